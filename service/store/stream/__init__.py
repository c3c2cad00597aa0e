"""The stream in Redis: documents in, decisions out, and what is remembered of them.

Reading order:

1. `documents.py`: those that are remembered; `signatures.py`: near-duplicates
2. `epochs.py`: what all of the stream looks like
3. `inbox.py`: documents in; `outbox.py`: decisions out; `routes.py`: where these are delivered

From outside, call the methods of `Store`'s parts, as for the rest of the store.
"""
