"""One delivery to a webhook: signed, within a timeout, and to an allowed address only.

Signatures follow Standard Webhooks (https://www.standardwebhooks.com):

    webhook-id         names the message; the same for every attempt
    webhook-timestamp  seconds
    webhook-signature  v1,base64(hmac-sha256(secret, "id.timestamp.body")), where the secret is whsec_base64

A URL that a user gives us is a way to make us call others (SSRF): the store, a cloud's metadata service, a neighbour.
So the message goes to an address that was checked (see addresses.py). Redirects and proxies are not followed.
"""

import asyncio
import base64
import hashlib
import hmac
import ssl
from collections.abc import Mapping

import httpx

from service.addresses import NoAddress, checked_address

MAX_REPLY_BYTES = 65536  # that are read of a response, so that the connection can be reused
PREFIX = "whsec_"


class NotDelivered(Exception):
    """A delivery failed; the message is a sentence for the user."""


class Webhooks:
    """Deliveries to one receiver, over connections of its own, so that a slow receiver delays no other."""

    def __init__(self, tls: ssl.SSLContext, timeout_s: float, private: bool, connections: int) -> None:
        self._timeout_s = timeout_s
        self._private = private
        self._client = httpx.AsyncClient(
            verify=tls,
            trust_env=False,
            follow_redirects=False,
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            headers={"User-Agent": "sluice"},
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Sends a message; NotDelivered unless the receiver answers with success."""
        try:
            async with asyncio.timeout(self._timeout_s):
                status = await self._post(httpx.URL(url), headers, body)
        except (TimeoutError, httpx.TimeoutException):
            raise NotDelivered(f"The receiver did not answer within {self._timeout_s:g} seconds.") from None
        except httpx.HTTPError as error:
            raise NotDelivered(f"The receiver could not be reached: {type(error).__name__}.") from None
        if 300 <= status < 400:
            raise NotDelivered(f"The receiver answered {status}; redirects are not followed.")
        if not 200 <= status < 300:
            raise NotDelivered(f"The receiver answered {status}.")

    async def _post(self, url: httpx.URL, headers: Mapping[str, str], body: bytes) -> int:
        target = url.copy_with(host=await self._resolve(url))
        headers = {"Host": url.netloc.decode(), **headers}
        extensions = {"sni_hostname": url.host} if url.scheme == "https" else {}
        request = self._client.stream("POST", target, headers=headers, content=body, extensions=extensions)
        async with request as response:
            size = 0
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > MAX_REPLY_BYTES:
                    break
            return response.status_code

    async def _resolve(self, url: httpx.URL) -> str:
        """The address to connect to."""
        try:
            return await checked_address(url, self._private, "SLUICE_WEBHOOKS_PRIVATE")
        except NoAddress as error:
            raise NotDelivered(str(error)) from None


def signature_headers(secret: str, message_id: str, body: bytes, now_s: int) -> dict[str, str]:
    """Headers by which the receiver can check who sent the message, when, and that it is complete."""
    content = f"{message_id}.{now_s}.".encode() + body
    signature = base64.b64encode(hmac.digest(_key(secret), content, hashlib.sha256)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(now_s), "webhook-signature": f"v1,{signature}"}


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
