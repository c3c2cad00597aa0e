"""What people say about decisions, and what follows from it.

Reading order:

    judge.py      the journey of a judgement: from a request to an event of the topic's log, learned at once
    goals.py      the state of a topic's goal, and which rejected documents are drawn for audit
    review.py     which documents are worth a judgement, best first
    known.py      relevant documents found elsewhere, as a test of recall; never learned from
    metrics.py    how well a topic has done on documents that it decided before they were judged
    curves.py     what other cuts of its scores would give: error against loss, precision against recall
    preview.py    what a topic would do under other settings, without changing it
    newest.py     how the newest documents score, and how a topic that does not exist yet would decide them
    goal_cost.py  what a goal would cost, shown when it is set

The mathematics is in `models/goals` and `models/online`; here it meets the topic's log (through `Learning`), its counts
and the store. Each class takes what it needs in its constructor and is built once, in `service/sluice.py`.

From outside: `Judge`, `Goals`, `Review`, `Known`, `Previews`, `Newest` and `GoalCosts`, as attributes of `Sluice`;
`goals.report`, `metrics.metrics` with `metrics.evidence`, and what `curves.py` offers, which are functions of a
published model. No module here knows HTTP, and only `judge.py` writes to a topic's log.
"""
