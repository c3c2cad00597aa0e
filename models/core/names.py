"""The names that requests, answers and stored records use for what the models do.

They stand here, without the code behind them, so that a schema can list the learners without loading numba. Those who
hold the code (online/registry.py, batch/registry.py) have the same names in the same order: a test compares them.
"""

from typing import Literal, get_args

# How a document's counts become the values that a model multiplies (core/views.py).
View = Literal["presence", "tf", "sqrt", "strength", "tfidf"]
VIEWS: tuple[View, ...] = get_args(View)  # a view's code in kernels is its place here

# Learners that take one example at a time, and what a topic may have for its learner.
LearnerName = Literal["wh", "eg", "winnow", "perceptron", "rocchio", "pa"]
LEARNER_NAMES: tuple[LearnerName, ...] = get_args(LearnerName)
LEARNER_KINDS = (*LEARNER_NAMES, "auto", "committee")

# Methods that learn from all examples at once, and what a job may train with: a learner can be shown them all, too.
BATCH_NAMES = ("boosting", "bayes", "centroid", "svm")
METHOD_KINDS = (*BATCH_NAMES, *LEARNER_NAMES)

# How a document came to be judged, which decides what the judgement is evidence of (goals/evidence.py).
Origin = Literal["given", "shown", "audit", "found"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)

# How a topic stands to one of its goals (goals/report.py).
GoalState = Literal["learning", "met", "at_risk", "unreachable"]
