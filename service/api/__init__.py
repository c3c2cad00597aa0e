"""The HTTP API: FastAPI, and nothing else. What it answers is decided in the rooms below, behind `Sluice`.

Reading order:

    app.py          `create_app`: config and store in, ASGI app out
    routes/         the paths, a module for each subject
    deps.py         what handlers share: the `Sluice`, parameters, reading a body, writing an answer, guards
    scopes.py       which scope each operation needs of a caller's key
    bodies.py       request bodies: media type, size limits, lines as they arrive
    feeds.py        Atom and JSON Feed
    present.py      from the service's values to the contract's types
    problems.py     every error as a problem document (RFC 9457)
    ndjson.py       streams of lines in both directions
    sse.py          server-sent events
    openapi.py      what `/docs` shows of bodies and answers; the examples are in examples.json
    telemetry.py    what each API process counts, for Prometheus
    prometheus.py   metrics of the whole service, from the store

The types of requests and answers are in `service/schemas`, and so is the parser (`schemas/parsing.py`), because streams
and jobs read the same documents without HTTP.

Beside it is the console (`service/console`), which shares its guards, its types and its way to show a topic, and which
`create_app` includes.

From outside: `create_app` alone. Nothing below this room may import it.
"""
