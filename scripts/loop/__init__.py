"""The service in a loop without its store: a labelled stream passes a topic, and a simulated reader judges it.

`scripts/evaluate online` and `scripts/simulate` both run this loop, and it is the service's: its code analyses, scores,
decides, draws audits, makes events, folds them and serves models, in the service's order. Only what the store does
stands here a second time, in some lines each. tests/system/test_loop.py sends the same stream through a running service
and compares every decision and every threshold.

Reading order:

    reader.py   what readers judge: all or some, at once or late, right or wrong; and what waits for them
    stream.py   what does not depend on a topic: features, epochs, repeated documents. Computed once for all topics
    topic.py    a topic in the service: decide, judge, learn, serve, refresh, review
    tally.py    a topic's counts, as the store keeps them
    loop.py     the topic, the stream and the reader together

The order of events, after each batch of documents that was decided and counted:

1. If enough documents are new, there is a next epoch. Topics that are too far behind it are refreshed. (In the service
   the housekeeper does that some seconds later, and SLUICE_EPOCH_S may put off the epoch.)
2. A topic is created when its reader has met enough relevant documents, which are its first judgements.
3. The reader judges what was shown and is due, in one request.
4. Now and then the reader judges the audits that are offered for review, in one request.
"""
