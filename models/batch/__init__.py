"""Learning from all judgements at once, for jobs that retrain a topic, and for comparing methods.

Reading order:

    passes.py               a learner of models/learners, trained in several passes or by many draws
    starting.py             where it starts: the query, or Rocchio's output; query expansion
    registry.py             all methods by name: those of models/methods, and learners
    folds.py                stratified folds for cross-validation
    refit.py                a topic fitted to all its judgements, with held-out scores
    together.py             several topics fitted at once by boosting
    comparison.py           which of two rankings is better, and whether that could be chance

From outside, use `refit`, `together`, `comparison` and `registry`.
"""
