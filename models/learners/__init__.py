"""Learners: algorithms that take one judged document at a time and keep a linear model.

A learner is a module, not a class: its formula and its differences from the paper at the head, then `Params`, `State`,
`start`, `resume`, `update`, `vectors` and `held_out`. It works on arrays by slot, a topic's own numbering of its
features, and knows nothing of topics, thresholds or the pocket: those are in models/online.

Reading order:

    base.py                 the contract of a learner; a document and a vector by slot
    vocabulary.py           from features to slots
    documents.py            many documents by slot, scored in one pass; the background
    widrow_hoff.py          `wh`, the default; read this one first
    averaged.py             what the next two share with it: additive steps, and their lazy average
    passive_aggressive.py   `pa`, PA-I
    perceptron.py           `perceptron`
    rocchio.py              `rocchio`
    winnow.py               `winnow`, multiplicative and mistake-driven
    eg.py                   `eg`, exponentiated gradient
    fixed.py                a vector that does not learn, for a model that was made elsewhere

To add a learner, write its module here, and register it: an entry in `LEARNERS` (online/registry.py), and its name in
`LearnerName` (core/names.py). tests/models/learners runs its contract over everything in `LEARNERS`, so a registered
learner is a tested one; what is left to write is the formula, dense and slow, in tests/support/reference.py, and a test
that compares the two. The API, committees and retraining take the learner from the registry, and the test of the
documentation asks for a row in docs/guide.md and a mention in README.md.

From outside, use `Background`, `DocumentVector`, `Vector`, `Vocabulary` and the registry; no learner by its module.
"""
