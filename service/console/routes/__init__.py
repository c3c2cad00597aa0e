"""The pages, by subject. A handler reads the request, asks the `Sluice`, and renders; it decides nothing.

    access.py      the key that a browser shows, and the name that signs its judgements
    inbox.py       the first page: what waits for a judgement; judging, skipping, withdrawing
    start.py       the first visit: from a feed and a sentence to an inbox
    topics.py      all topics, and a new one
    topic.py       one topic: charts, words, settings, versions, judgements, routes, jobs
    search.py      over the documents that are remembered
    sources.py     where documents come from
    operation.py   how the service itself is doing
    manual.py      `/docs`

Each module has a `router`, made by `pages.new_router`. The pages are not part of the contract, and may change.
"""
