"""The public contract as types: what a request may hold and what an answer does.

Answers are built from the same modules as requests, so `/docs` cannot drift from them.

* `fields.py`: what a single field may be
* `common.py`, `topics.py`, `documents.py`, `feedback.py`: the types that most users meet, named here, too
* `models.py`, `review.py`, `metrics.py`, `jobs.py`, `flow.py`: a module a subject
* `parsing.py`: from raw bytes to these types, bounded and strict; not imported here, because it loads a kernel

The path `service.schemas` is public: clients import from it. Nothing below `schemas` knows HTTP or Redis.
"""

from service.schemas.common import Health, Page, Problem
from service.schemas.documents import (
    Classify,
    ClassifyOptions,
    Contribution,
    Decision,
    Document,
    Flip,
    Pinnable,
    Result,
    Results,
    Verdict,
)
from service.schemas.feedback import (
    Before,
    Feedback,
    IdOrDocument,
    Judgement,
    Judgements,
    Learned,
    LearnedAll,
    PastJudgement,
    Withdrawn,
)
from service.schemas.topics import (
    EFFECTS,
    Counts,
    Effect,
    Estimate,
    Goal,
    GoalStatus,
    Judged,
    Learner,
    NewTopic,
    Param,
    PassedCounts,
    Pins,
    Policy,
    PooledRecall,
    Retraining,
    Rules,
    SingleTerm,
    Status,
    Topic,
    TopicChange,
    TopicFields,
)

__all__ = [
    "EFFECTS",
    "Before",
    "Classify",
    "ClassifyOptions",
    "Contribution",
    "Counts",
    "Decision",
    "Document",
    "Effect",
    "Estimate",
    "Feedback",
    "Flip",
    "Goal",
    "GoalStatus",
    "Health",
    "IdOrDocument",
    "Judged",
    "Judgement",
    "Judgements",
    "Learned",
    "LearnedAll",
    "Learner",
    "NewTopic",
    "Page",
    "Param",
    "PassedCounts",
    "PastJudgement",
    "Pinnable",
    "Pins",
    "Policy",
    "PooledRecall",
    "Problem",
    "Result",
    "Results",
    "Retraining",
    "Rules",
    "SingleTerm",
    "Status",
    "Topic",
    "TopicChange",
    "TopicFields",
    "Verdict",
    "Withdrawn",
]
