"""Near-duplicates in the stream: which of the recent documents a new one repeats.

The stream of signatures is a log, and reading it in order determines what each document repeats (see
models/text/duplicates.py). So all processes agree, including those that start later: what is kept of the log is enough.
The command that appends a process's own signatures replies with those that other processes have appended since.

What documents repeat is certain once their signatures are appended. But most of it can be guessed before, from the log
as read so far, so the documents that they seem to repeat are loaded in the same round trip.

Rejected: looking documents up in Redis by their bands. That takes ten fields per document, twice the memory of the
document itself, and as much of the store's time as the rest of a decision.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.text.duplicates import Repeats
from models.text.minhash import HASHES, Signatures
from service.store.redis.connection import Connection
from service.store.redis.keys import NOTED, SIGNATURES
from service.store.redis.scripts import Script, entry_fields, entry_number

READ_SIZE = 200  # entries that are read together

# Appends signatures. Replies with the number of the last document, the last number that the caller had read, and what
# was appended since. Arguments: number of documents, their ids, their signatures, the first number that must be kept,
# the last number that the caller has read, maximum number of entries in the reply.
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
        self._repeats = Repeats(self._window)
        self._read_upto = 0

    async def note_cmd(self, ids: Sequence[str], signed: Signatures) -> tuple[Script, list[str]]:
        """Command that appends signatures (pass its reply to `repeats`), and the documents that these seem to
        repeat."""
        async with self._reading:
            return await asyncio.to_thread(self._note_cmd, ids, signed)

    def _note_cmd(self, ids: Sequence[str], signed: Signatures) -> tuple[Script, list[str]]:
        texts = json.dumps(ids), signed.astype("<u4").tobytes()
        recent = self._repeats.recent
        oldest = recent.oldest(self._read_upto)
        note = Script(NOTE, [NOTED, SIGNATURES], [len(ids), *texts, oldest, self._read_upto, READ_SIZE])
        return note, list({name for name in recent.find(signed) if name})

    async def repeats(self, ids: Sequence[str], reply: Any) -> dict[str, str]:
        """Those of the documents that repeat another one, each with that other one."""
        last, read_upto, rows = reply
        async with self._reading:
            if last <= read_upto:
                self._forget()  # Redis was emptied or replaced
            await self._add([(id, entry_fields(fields)) for id, fields in rows])
            while self._read_upto < last and (more := await self._load_more()):
                await self._add(more)
            return self._repeats.among(ids)

    def first(self, name: str) -> str:
        """The document that this one repeats, going by the log as read so far; or itself."""
        return self._repeats.first(name)

    async def catch_up(self) -> None:
        """Reads all that other processes have appended, so that the next document need not wait for that."""
        async with self._reading:
            while rows := await self._load_more():
                await self._add(rows)

    async def _load_more(self) -> list[Any]:
        async with self._connection.acquire():
            rows: list[Any] = await self._connection.redis.xrange(
                SIGNATURES, f"({self._read_upto}-0", "+", count=READ_SIZE
            )
        return rows

    async def _add(self, rows: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        new = [(entry_number(id), fields) for id, fields in rows if entry_number(id) > self._read_upto]
        if new:
            await asyncio.to_thread(self._add_in_thread, new)

    def _add_in_thread(self, rows: Sequence[tuple[int, Mapping[bytes, bytes]]]) -> None:
        for number, fields in rows:
            ids = json.loads(fields[b"ids"])
            # A copy, because the array is read-only, and numba would compile everything a second time for that.
            signed = np.frombuffer(fields[b"signatures"], "<u4").astype(np.uint32).reshape(-1, HASHES)
            self._repeats.add(ids, signed, number)
            self._read_upto = number
