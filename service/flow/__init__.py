"""Documents in, decisions out: how a document gets from a producer to those who want to know what was decided.

Documents come with `POST /classify` or through the Redis stream `sluice:in`. They are decided and remembered, and the
decisions other than *reject* are appended to the output streams of their topics. From there they go to clients that
listen over HTTP, and along routes to webhooks and other streams.

In reading order:

    classify.py      classifies documents: decides, remembers, counts and appends them to the output streams
    consumer.py      does the same for the stream `sluice:in`, as a pipeline, and never loses an entry
    ranking.py       ranks what a topic let through by the model as it is now, or as learned from feedback
    subscribers.py   sends the output streams to HTTP clients as server-sent events
    formats.py       what a webhook's receiver is sent: our message, or one for a chat
    webhooks.py      makes one delivery to a webhook, signed and to public addresses only
    deliveries.py    takes the entries of the output streams along the routes of each topic, and retries

How a decision is made is in service/topics, the streams and consumer groups are in service/store (inbox.py, outbox.py,
routes.py, redis/consumer_group.py), and the processes that run all this are in service/run.

From outside, use `Classifier`, `Ranking`, `Subscribers.subscribe` and, in a process that runs them, `Consumer.run`,
`Subscribers.run` and `Deliveries.run`. `Batch` is for the consumer, `Webhooks` for deliveries. Consumers load numba and
the models only when the first document comes, so deliveries.py, formats.py and webhooks.py must not import them.
"""
