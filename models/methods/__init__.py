"""The batch methods, one module each.

A method is a module with its formula at the head, `Params` (frozen, validated, with the `view` it works in), and
`fit(p, x, labels, seed, progress)`, which returns one plane a topic. A plane is a `Linear` once it is served, so
online learning goes on from it, and the bank scores it like any other model.

Reading order:

    matrix.py               documents as one sparse matrix, and planes
    feature_selection.py    fewer terms before learning
    centroid.py             `centroid`; read this one first
    bayes.py                `bayes`
    svm.py, logistic.py     `svm` and `logistic`, by scikit-learn (one_by_one.py)
    boosting.py             `boosting`, AdaBoost.MH
    stumps.py               its weak hypotheses, and the sums they are chosen by
    farm.py                 boosting by several workers
    registry.py             all of these by name

To add a method, write its module here, and register it: an entry in `METHODS` (registry.py), and its name in
`BATCH_NAMES` (core/names.py). tests/models/batch/test_registry.py runs its contract over every registered method; what
is left to write is the formula, dense and slow, in tests/support/reference.py, and a test that compares the two.

From outside, a method is reached by its name through `registry`, or through that of models/batch, which has learners in
several passes, too.
"""
