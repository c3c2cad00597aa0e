"""What a key looks like, and the hash that is kept of it.

    sluice_ID_SECRET        ID: 16 hexadecimal digits, which find the record; SECRET: 256 random bits

A plain SHA-256 is enough: it is there so that a stolen store does not hold keys, and nobody guesses 256 bits. (A slow
hash protects passwords, which people choose.)
"""

import hmac
import re
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import NamedTuple

FORM = re.compile(r"sluice_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")


class Secret(NamedTuple):
    id: str
    key: str


def new_secret() -> Secret:
    id = token_hex(8)
    return Secret(id, f"sluice_{id}_{token_urlsafe(32)}")


def id_of(key: str) -> str | None:
    """The id in a key; None if this has not the form of a key."""
    match = FORM.fullmatch(key)
    return match[1] if match else None


def hash_of(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def matches(key: str, hash: str) -> bool:
    """Whether the key has this hash; takes as long wherever they differ."""
    return hmac.compare_digest(hash_of(key), hash)
