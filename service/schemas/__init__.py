"""The public contract as types: what a request may hold, and what an answer holds.

Reading order:

    fields.py       what a single field may be: texts, ids, numbers; the bases `Request` and `Answer`
    common.py       problems, pages, health
    topics.py       topics and their settings. `TopicFields` declares each setting once, with the effect of a change
    documents.py    documents and decisions
    feedback.py     judgements
    models.py, remembered.py, review.py, metrics.py, jobs.py, flow.py, feeds.py, sources.py, access.py
                    a module for each further subject
    parsing.py      from raw bytes to these types, bounded and strict; not imported here, because it loads numba

The server answers with these types, and `/docs` is generated from them, so the two cannot drift apart. Requests are
strict: no coercion, no unknown field. Answers may gain fields.

The path `service.schemas` is public: clients import the types from it. No module here knows HTTP or Redis.
"""

from service.schemas.common import About, Health, Page, Problem
from service.schemas.documents import (
    ORIGIN,
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
    origin,
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
    TARGETS,
    Counts,
    Cuts,
    Effect,
    Estimate,
    Goal,
    GoalStatus,
    Group,
    Judged,
    LearnedRanking,
    Learner,
    Maximised,
    Measure,
    NewTopic,
    Param,
    PassedCounts,
    Pins,
    Pocket,
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
    "ORIGIN",
    "TARGETS",
    "About",
    "Before",
    "Classify",
    "ClassifyOptions",
    "Contribution",
    "Counts",
    "Cuts",
    "Decision",
    "Document",
    "Effect",
    "Estimate",
    "Feedback",
    "Flip",
    "Goal",
    "GoalStatus",
    "Group",
    "Health",
    "IdOrDocument",
    "Judged",
    "Judgement",
    "Judgements",
    "Learned",
    "LearnedAll",
    "LearnedRanking",
    "Learner",
    "Maximised",
    "Measure",
    "NewTopic",
    "Page",
    "Param",
    "PassedCounts",
    "PastJudgement",
    "Pinnable",
    "Pins",
    "Pocket",
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
    "origin",
]
