"""One delivery to a webhook: signed, to an address that is allowed, within a time, and without going anywhere else.

Signatures are those of Standard Webhooks (https://www.standardwebhooks.com):

    webhook-id         names the message; the same whenever it is sent again
    webhook-timestamp  seconds
    webhook-signature  v1,base64(hmac-sha256(secret, "id.timestamp.body")), the secret being whsec_base64

An address that somebody gives us is a way to make us call others: the store, a cloud's metadata, a neighbour. So the
name is resolved here, once, every address it has must be public, and it is that address we connect to: a name that
resolves otherwise a moment later gains nothing. The name itself is still what the certificate is checked for. Redirects
and proxies are not followed.
"""

import asyncio
import base64
import hashlib
import hmac
import socket
import ssl

import httpx

from service.addresses import is_public

MAX_REPLY_BYTES = 65536  # of an answer that are read, so that the connection can be used again
PREFIX = "whsec_"
PORTS = {"http": 80, "https": 443}


class NotDelivered(Exception):
    """The receiver did not take it; the message is a sentence."""


class Webhooks:
    """Deliveries to one receiver, over connections of its own: whoever is slow keeps only itself waiting."""

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

    async def send(self, url: str, secret: str, message: str, body: bytes, now_s: int) -> None:
        """The receiver has said that it took it."""
        try:
            async with asyncio.timeout(self._timeout_s):
                status = await self._post(httpx.URL(url), signed(secret, message, body, now_s), body)
        except TimeoutError:
            raise NotDelivered(f"It did not answer within {self._timeout_s:g} seconds.") from None
        except httpx.TimeoutException:
            raise NotDelivered(f"It did not answer within {self._timeout_s:g} seconds.") from None
        except httpx.HTTPError as error:
            raise NotDelivered(f"It could not be reached: {type(error).__name__}.") from None
        if 300 <= status < 400:
            raise NotDelivered(f"It answered {status}; redirects are not followed.")
        if not 200 <= status < 300:
            raise NotDelivered(f"It answered {status}.")

    async def _post(self, url: httpx.URL, headers: dict[str, str], body: bytes) -> int:
        address = await self._address(url)
        there = url.copy_with(host=address)
        headers |= {"Host": url.netloc.decode(), "Content-Type": "application/json"}
        extensions = {"sni_hostname": url.host} if url.scheme == "https" else {}
        sending = self._client.stream("POST", there, headers=headers, content=body, extensions=extensions)
        async with sending as answer:
            read = 0
            async for chunk in answer.aiter_raw():
                read += len(chunk)
                if read > MAX_REPLY_BYTES:
                    break
            return answer.status_code

    async def _address(self, url: httpx.URL) -> str:
        """The address to connect to; every one that the name has must be allowed."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                url.raw_host.decode(), url.port or PORTS[url.scheme], type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError):  # the latter for a name that no resolver takes
            raise NotDelivered("Its name cannot be resolved.") from None
        addresses = [str(entry[4][0]) for entry in found]
        if not self._private and not all(map(is_public, addresses)):
            raise NotDelivered("Its address is not a public one (SLUICE_WEBHOOKS_PRIVATE allows others).")
        return addresses[0]


def signed(secret: str, message: str, body: bytes, now_s: int) -> dict[str, str]:
    """The headers that say who sent it, when, and that it is whole."""
    said = f"{message}.{now_s}.".encode() + body
    signature = base64.b64encode(hmac.digest(key_of(secret), said, hashlib.sha256)).decode()
    return {"webhook-id": message, "webhook-timestamp": str(now_s), "webhook-signature": f"v1,{signature}"}


def key_of(secret: str) -> bytes:
    """The key that a secret holds; ValueError if it is none."""
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
