"""Near-duplicates in the flow: which document, of those that came lately, a new one repeats.

    sluice:{repeats}:noted        string   how many documents have been noted
    sluice:{repeats}:signatures   stream   some documents an entry, under the number of the last: their ids, in JSON,
                                           and their signatures (models/text/minhash.py); bounded

The stream is a log, and what a document repeats is what comes of reading it in order (models/text/duplicates.py). So
all processes agree on it, and those that start later do, too: what is kept of it says as much as all of it would. In
the round trip in which a process notes documents of its own it hears of what the others have noted since.

What documents repeat is certain when they are noted. But most of it can be known before, from what was heard so far,
and it is asked for at once what these firsts are: in the same round trip, where another would wait for its turn.

Rejected: to look documents up in the store by their bands. That takes ten fields a document, twice the memory of the
document itself, and as much of the store's time as all the rest of a decision.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.text.duplicates import RecentDocuments
from models.text.minhash import HASHES, Signatures
from service.store.connection import Connection
from service.store.keys import NOTED, SIGNATURES
from service.store.scripts import Script

AT_ONCE = 200  # entries that are read together

# Notes documents. Answers with the number of the last, that of the last which the caller had heard of, and what was
# noted since. Arguments: how many documents, their ids, their signatures, the first that must be kept, the last that
# the caller has heard of, most entries in the answer.
NOTE = """
local last = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('XADD', KEYS[2], 'MINID', '~', math.min(tonumber(ARGV[4]), last), last .. '-0',
  'ids', ARGV[2], 'signatures', ARGV[3])
return {last, tonumber(ARGV[5]), redis.call('XRANGE', KEYS[2], '(' .. ARGV[5] .. '-0', '+', 'COUNT', ARGV[6])}
"""


class SignatureLog:
    def __init__(self, connection: Connection, window: int) -> None:
        self._connection = connection
        self._window = window
        self._reading = asyncio.Lock()
        self._forget()

    def _forget(self) -> None:
        self._recent = RecentDocuments(self._window)
        self._first: dict[str, str] = {}  # of what repeats another, the oldest first
        self._heard = 0

    async def note(self, ids: Sequence[str], signed: Signatures) -> tuple[Script, list[str]]:
        """What notes these documents; its answer is for `hear`. And documents that some of them seem to repeat."""
        async with self._reading:
            return await asyncio.to_thread(self._note, ids, signed)

    def _note(self, ids: Sequence[str], signed: Signatures) -> tuple[Script, list[str]]:
        texts = json.dumps(ids), signed.astype("<u4").tobytes()
        oldest = self._recent.oldest(self._heard)
        note = Script(NOTE, [NOTED, SIGNATURES], [len(ids), *texts, oldest, self._heard, AT_ONCE])
        return note, list({name for name in self._recent.find(signed) if name})

    async def hear(self, ids: Sequence[str], answer: Any) -> dict[str, str]:
        """Of these documents, which have just been noted, those that repeat another, and which."""
        last, heard, rows = answer
        async with self._reading:
            if last <= heard:
                self._forget()  # the store was emptied, or is another than before
            await self._read(rows)
            while self._heard < last and (more := await self._more()):
                await self._read(more)
            return {name: self._first[name] for name in ids if name in self._first}

    def first(self, name: str) -> str:
        """The document that this one repeats, as far as has been heard; or itself."""
        return self._first.get(name, name)

    async def catch_up(self) -> None:
        """Hears of all that others have noted: before this process began, so that its first document need not wait for
        that, or since it last noted something itself."""
        async with self._reading:
            while rows := await self._more():
                await self._read(rows)

    async def _more(self) -> list[Any]:
        async with self._connection.asking():
            rows: list[Any] = await self._connection.redis.xrange(SIGNATURES, f"({self._heard}-0", "+", count=AT_ONCE)
        return rows

    async def _read(self, rows: Sequence[Any]) -> None:
        new = [row for row in rows if _number(row) > self._heard]
        if new:
            await asyncio.to_thread(self._add, new)

    def _add(self, rows: Sequence[Any]) -> None:
        for row in rows:
            fields: Mapping[bytes, bytes] = _fields(row)
            ids = json.loads(fields[b"ids"])
            # A copy, because what is read is read-only, and numba would compile everything twice for it.
            signed = np.frombuffer(fields[b"signatures"], "<u4").astype(np.uint32).reshape(-1, HASHES)
            for name, first in zip(ids, self._recent.add(ids, signed, _number(row)), strict=True):
                self._first.pop(name, None)
                if first != name:
                    self._first[name] = first
            self._heard = _number(row)
        while len(self._first) > self._window:
            del self._first[next(iter(self._first))]


def _number(row: Any) -> int:
    return int(row[0].partition(b"-")[0])


def _fields(row: Any) -> dict[bytes, bytes]:
    """A script's answer has fields and values in a line, a command's as a mapping."""
    flat = row[1]
    return flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))
