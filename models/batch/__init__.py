"""Batch methods: learning from all documents at once, for jobs that retrain a topic, and for comparing methods.

Reading order:

    matrix.py               documents as one sparse matrix, and planes
    methods                 a package: a module for each method
    registry.py             all of these by name
    feature_selection.py    fewer terms before learning
    folds.py                stratified folds for cross-validation
    refit.py                a topic fitted to all its judgements, with held-out scores
    together.py             several topics fitted at once by boosting
    comparison.py           which of two rankings is better, and whether that could be chance

From outside, use `refit`, `together`, `comparison`, `registry` and, with workers of your own, `methods.farm`.
"""
