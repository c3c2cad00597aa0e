"""The names that requests, answers and stored records use for what the models do.

They are kept apart from the code behind them, so that a schema can list the learners without loading numba. The
registries of that code (online/registry.py, methods/registry.py) have the same names in the same order: a test compares
them.
"""

from typing import Literal, get_args

# How a document's counts become the values that a model multiplies (core/views.py).
# Learners are given a view of words; where there is a projection, "semantic" takes the place of "tfidf".
WordView = Literal["presence", "tf", "sqrt", "strength", "tfidf"]
View = Literal[WordView, "semantic"]
VIEWS: tuple[View, ...] = get_args(View)  # the code of a view in kernels is its place here

# Of the tag that tells one semantic projection from another (core/latent.py).
TAG_BITS = 24

# Learners that take one example at a time, and the kinds of learner a topic may have.
LearnerName = Literal["wh", "eg", "winnow", "perceptron", "rocchio", "pa"]
LEARNER_NAMES: tuple[LearnerName, ...] = get_args(LearnerName)
LEARNER_KINDS = (*LEARNER_NAMES, "auto", "committee")

# Methods that learn from all examples at once, and the methods a job may train with: learners can do that, too.
BatchName = Literal["boosting", "bayes", "centroid", "svm", "logistic"]
BATCH_NAMES: tuple[BatchName, ...] = get_args(BatchName)
METHOD_KINDS = (*BATCH_NAMES, *LEARNER_NAMES)

# What the members of a committee may be.
MemberName = Literal[LearnerName, BatchName]

# Scores that the pocket ranks judged documents by (online/pocket.py).
PocketScores = Literal["both", "held_out", "learned"]

# How a document came to be judged, which decides what the judgement is evidence of (goals/evidence.py).
Origin = Literal["given", "shown", "audit", "found"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)

# Whether a topic may accept before its goal is certain (goals/promises.py).
GoalMode = Literal["best", "strict"]

# Whether a topic meets one of its goals (goals/reporting/report.py).
GoalState = Literal["learning", "met", "at_risk", "unreachable"]
