"""A client of the service: `Client` blocks, `AsyncClient` awaits; they have the same methods.

    with Client("http://127.0.0.1:8000") as sluice:
        sluice.create({"id": "crude", "query": "crude oil OPEC"})
        for result in sluice.classify_all(documents):       # any number, in memory that does not grow
            …
        sluice.feedback("crude", "d1", relevant=True)

Answers are models of `service.schemas`; what is sent may be one of these, or the same as a mapping. A call that got no
answer, or was told to come back later, is sent again only where that is safe.
"""

from service.client.calls import Retries
from service.client.clients import AsyncClient, Client
from service.client.errors import ClientError, Refused, Unreachable

__all__ = ["AsyncClient", "Client", "ClientError", "Refused", "Retries", "Unreachable"]
