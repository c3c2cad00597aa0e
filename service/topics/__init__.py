"""A topic, from its log to its decisions.

A topic is a standing query that learns. All that is known of it is its log, an ordered list of events in Redis:
settings, judgements, published models. The rest follows from that:

    state = fold(learn, query or base, log)

Correcting a judgement, restoring a version, recovering from a crash, previewing settings, importing and replaying are
all the same fold over a different log. There is no inverse of learning, and processes need no locks between them.

Reading order:

    settings.py         a topic's settings, as the log keeps them, and the checks on a change
    features.py         how the deployment analyses text; the features that the log keeps
    projections.py      projections of the stream, numbered: by which topics go by meaning
    background.py       the stream as a whole, in numbered epochs: word frequencies, a sample, a projection
    projecting.py       makes the next projection, and publishes an epoch with it
    published.py        a published model, and a base that learning continues from
    in_words.py         a model that goes by meaning as one of words
    state.py            a topic's state in memory: log, judgements in force, trainer
    state_cache.py      the states that this process keeps
    learning.py         append, fold, publish: every change of a topic
    decisions/          serving topics, and deciding documents by them
    sync.py             loads what other processes publish, and folds what they left
    counts.py           how the stream was decided, by topic
    retrain_policy.py   when a topic is retrained automatically
    crud.py             topics as their users handle them
    warm_up.py          loads the compiled kernels before the first request

From outside, change topics with `Topics` (crud.py) and `Learning`; read a state with `Learning.read` only, which lets
nothing change it meanwhile. `Registry.topics` is what this process serves: read it, and leave `put` and `remove` to
learning.py and sync.py. Everything that is a frozen value or a function may be used by anybody.
"""
