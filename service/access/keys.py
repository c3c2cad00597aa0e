"""Keys: made, looked up, limited, revoked.

Each process remembers for a second what it looked up, so that a key costs no round trip with every request: a key that
is revoked is refused within a second, at once by the process that revoked it. Keys that are not found are not
remembered, so guessing fills no memory.

The administrator's key of the configuration is in no store. It has every scope, and is what one gets back in with.
"""

import hmac
import math
from collections.abc import Callable
from dataclasses import dataclass

from service.access.secrets import hash_of, id_of, matches, new_secret
from service.clock import ms_of, now_ms, time_of
from service.errors import NotFound, TooManyRequests, Unauthorized
from service.schemas.access import IssuedKey, Key, NewKey, Scope
from service.store.api_keys import ApiKeyStore, KeyRecord

REMEMBERED_MS = 1000
MAX_REMEMBERED = 1000  # keys
USED_MS = 60_000  # between two notes that a key is in use
WINDOW_S = 10  # seconds' worth of requests that may come at once
ADMINISTRATOR = "administrator"  # name of the caller with the key of the configuration
FIRST_NAME = "first key"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the name of the key, and what it may do."""

    name: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


@dataclass(frozen=True, slots=True)
class _Found:
    record: KeyRecord
    at_ms: int


class Keys:
    def __init__(self, store: ApiKeyStore, admin_key: str | None, clock: Callable[[], int] = now_ms) -> None:
        self._store = store
        self._admin_hash = hash_of(admin_key) if admin_key else None
        self._clock = clock
        self._found: dict[str, _Found] = {}
        self._noted_ms: dict[str, int] = {}

    async def authenticate(self, key: str) -> Caller:
        """The caller who has this key; Unauthorized if nobody has."""
        if self._admin_hash and matches(key, self._admin_hash):
            return Caller(ADMINISTRATOR, frozenset(["admin"]))
        record = await self._find(key)
        now = self._clock()
        if record is None or not hmac.compare_digest(record.hash, hash_of(key)):
            raise Unauthorized("This key is not known here; it may have been revoked.")
        if record.expires_ms is not None and record.expires_ms <= now:
            raise Unauthorized(f"This key expired at {time_of(record.expires_ms):%Y-%m-%d %H:%M} UTC.")
        if record.requests_per_s is not None:
            await self._limit(record.id, record.requests_per_s)
        if now - self._noted_ms.get(record.id, 0) > USED_MS:
            self._noted_ms[record.id] = now
            await self._store.note_used(record.id, now - now % USED_MS)
        return Caller(record.name, frozenset(record.scopes))

    async def issue(self, new: NewKey) -> IssuedKey:
        expires_ms = None if new.expires is None else ms_of(new.expires)
        record, key = self._make(new.name, tuple(dict.fromkeys(new.scopes)), expires_ms, new.requests_per_s)
        await self._store.add(record)
        return IssuedKey(**_shown(record, None).model_dump(), key=key)

    async def issue_first(self) -> str | None:
        """Makes a key with every scope if there is no key at all; of several processes, one gets it."""
        if self._admin_hash:
            return None
        record, key = self._make(FIRST_NAME, ("admin",), None, None)
        return key if await self._store.add_first(record) else None

    async def page(self, after: str, limit: int) -> tuple[list[Key], str | None]:
        """Keys, oldest first, beginning after the one with the given id."""
        keys = [_shown(*key) for key in await self._store.load_all()]
        start = next((n for n, key in enumerate(keys, 1) if key.id == after), 0)
        page = keys[start : start + limit]
        return page, page[-1].id if len(keys) > start + limit else None

    async def revoke(self, id: str) -> None:
        self._found.pop(id, None)
        if not await self._store.revoke(id):
            raise NotFound(f"There is no key {id!r}.")

    def _make(
        self, name: str, scopes: tuple[Scope, ...], expires_ms: int | None, requests_per_s: float | None
    ) -> tuple[KeyRecord, str]:
        id, key = new_secret()
        return KeyRecord(id, name, scopes, hash_of(key), self._clock(), expires_ms, requests_per_s), key

    async def _find(self, key: str) -> KeyRecord | None:
        if (id := id_of(key)) is None:
            return None
        now, found = self._clock(), self._found.get(id)
        if found is not None and 0 <= now - found.at_ms < REMEMBERED_MS:
            return found.record
        self._found.pop(id, None)
        if (record := await self._store.load(id)) is not None and matches(key, record.hash):
            if len(self._found) >= MAX_REMEMBERED:
                self._found.clear()
            self._found[id] = _Found(record, now)
        return record

    async def _limit(self, id: str, per_s: float) -> None:
        wait_s, whole_s = await self._store.take(id, per_s, WINDOW_S)
        if wait_s > 0:
            quota = max(1, int(per_s * WINDOW_S))
            sentence = f"This key may send {per_s:g} requests per second; wait {math.ceil(wait_s)} s."
            raise TooManyRequests(sentence, quota, WINDOW_S, wait_s, whole_s)


def _shown(record: KeyRecord, used_ms: int | None) -> Key:
    return Key(
        id=record.id,
        name=record.name,
        scopes=list(record.scopes),
        expires=None if record.expires_ms is None else time_of(record.expires_ms),
        requests_per_s=record.requests_per_s,
        created=time_of(record.created_ms),
        used=None if used_ms is None else time_of(used_ms),
    )
