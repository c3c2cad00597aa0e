"""Everything that Redis remembers, and the only package that knows Redis.

Reading order:

1. `redis/`: connections, keys, scripts, consumer groups, the embedded server; begin with its `keys.py`, which says what
   each key holds.
2. `topics.py`: `Store`, the one object that the rest of the service is given; topics are created and deleted here.
3. A topic's log: `events.py` (an event), `logs.py` (the log in Redis), `resolve.py` (what is in force after reading it;
   no Redis in it), `versions.py` (the models that were published), `codec.py` (models and features as bytes).
4. Beside the log: `counts.py` (how the stream was decided), `review.py` (what waits for a judgement), `known.py` (known
   items), `imports.py` (topics that come as a file).
5. `stream/`: documents in, decisions out, and what is remembered of them.
6. `jobs.py`: work in the background. `sources.py`: feeds that are polled, and by whom. `api_keys.py`: who may call.

A Lua script stands beside the Python that calls it, in the module whose keys it changes; `redis/scripts.py` says what
all scripts have in common. So a new key touches `redis/keys.py` and that module, and `topics.py` if it is a part of a
topic that a new class reads.

From outside, call the methods of `Store` and of its parts (`store.logs`, `store.outbox` …). Where several calls are to
share a round trip, functions that end in `_cmd` or `_cmds` build steps, which callers may collect and pass to
`Store.run`, but treat as opaque. Nobody outside imports `scripts`, `connection` or redis; import-linter checks this.
"""
