"""The Python client of the service: `Client` blocks, `AsyncClient` is awaited; they have the same methods.

    with Client("http://127.0.0.1:8000") as sluice:
        sluice.create({"id": "crude", "query": "crude oil OPEC"})
        for result in sluice.classify_all(documents):       # any number, in bounded memory
            …
        sluice.feedback("crude", "d1", relevant=True)

Results are models of `service.schemas`; what you send may be such a model or a mapping. A call that gets no reply, or a
503, is retried only if that is safe. Every failure raises a `ClientError`.

The names below are public, and so are the methods of the clients. Everything else is the inside, in reading order:

    errors.py       the errors
    calls.py        a call: what to send, how to parse the reply, when to retry
    lines.py        many documents or judgements in batches, as NDJSON
    sse.py          following a stream of events
    transport.py    carrying these out, blocking or async
    operations.py   every call of the API, as a function
    clients.py      the two clients, made of these functions

To add a call, write a function in `operations.py` and a line in each class of `clients.py`. This package imports
nothing of the service but its schemas, so that a program that only asks a service loads neither numpy nor a web server.
"""

from service.client.calls import Retries
from service.client.clients import AsyncClient, Client
from service.client.errors import ClientError, Refused, UnexpectedReply, Unreachable

__all__ = ["AsyncClient", "Client", "ClientError", "Refused", "Retries", "UnexpectedReply", "Unreachable"]
