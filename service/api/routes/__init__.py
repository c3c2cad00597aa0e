"""The public contract, path by path. A handler reads the request, asks the `Sluice` and answers; it decides nothing.

    topics.py      topics: created, listed, read, changed, deleted
    documents.py   classify, feedback, and the list of judgements
    remembered.py  the documents that are remembered
    versions.py    versions of a topic, and its model
    review.py      what to judge next, known items, pooled recall
    metrics.py     how a topic has done; previews of other settings
    flow.py        what topics let through: events, lists, routes; the stream of incoming documents
    feeds.py       the same, and searches, for feed readers
    jobs.py        background jobs
    sources.py     feeds that documents are fetched from
    archive.py     export and import of topics
    keys.py        keys that callers authenticate with
    health.py      health, readiness, Prometheus

Each module has a `router`, made by `deps.new_router`, and `app.py` includes it. To add a path: its types in
`service/schemas`; the handler here, with `takes` for its body and `answers` for what comes back; a new body in
`openapi.BODIES`, with examples in examples.json; the scope that it needs in `scopes.py`; the path in README's table,
and in `CONTRACT` of tests/service/api/test_openapi.py, which sends the examples. A page of a list is `deps.paged`;
errors are raised as those of `service/errors.py`.
"""
