"""A topic as a file: exported, kept, and imported on the same server or another.

Reading order:

    file.py       the format, line by line, and why it is like that; `ArchiveWriter` and `ArchiveReader`
    lines.py      each kind of line as a type, and how events of the log become lines and back
    transfer.py   `Transfer`: export a topic from the store, import one into it, as a whole or not at all

The format `sluice-topic/1` is public: files that exist must stay readable. A new field of an event needs a default in
`lines.EventLine`, so that older files still parse.

From outside: `Transfer`, as an attribute of `Sluice`; `ArchiveReader` with `ArchiveLine`, which the route feeds with
lines as they arrive; `file.example`, which `/docs` shows. Backfill jobs read another kind of archive, documents line by
line; that is in `service/jobs/backfill.py`.
"""
