"""One of several topics: which one accepts a document, where at most one, or exactly one, may.

Each topic comes with its own decision and with the calibrated probability that the document belongs to it. What a rule
of the user decides stands: a topic whose rule rejects is out, and one whose rule accepts goes before all others. Of the
rest, with p the probabilities and m the margin:

    exactly one    contenders: all topics         the likeliest accepts if p₁ − p₂ > m
    at most one    contenders: those that would   the likeliest keeps its decision if p₁ − p₂ > m
                   accept, or abstain

    otherwise      those with p₁ − p ≤ m abstain: they are too near to choose between
    always         all others reject

Two refinements. Where the likeliest abstains by its own decision, contenders that would accept abstain, too: if the
best candidate is not sure, the others cannot be. And scores of different topics do not compare, so without
probabilities there is no choice: several contenders of which one has none abstain all, and `exactly` waits until all
topics have one (until then it is at most one). Nothing depends on the order of the topics, and equal probabilities are
always too near.

Rejected: deciding by p / (1 − p) normalised over the topics, as if they were independent; it moves the margin, not the
choice.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Decided = Literal["accept", "abstain", "reject"]


class Candidate(NamedTuple):
    """A topic with its own decision about a document."""

    topic: str
    decision: Decided
    probability: float | None  # None while too little was judged
    by_rule: bool = False


def decide(candidates: Sequence[Candidate], exactly: bool, margin: float) -> dict[str, Decided]:
    """The decision of each topic as one of these."""
    allowed = [each for each in candidates if not each.by_rule or each.decision != "reject"]
    near = [each for each in allowed if each.by_rule]
    if not near and exactly and _comparable(allowed):
        near = _nearest(allowed, margin)
    elif not near:
        contenders = [each for each in allowed if each.decision != "reject"]
        if all(each.decision == "abstain" for each in contenders):
            return {each.topic: each.decision for each in candidates}
        near = _nearest(contenders, margin) if _comparable(contenders) else contenders
        if len(near) == 1 and near[0].decision == "abstain":
            near = contenders
    chosen: Decided = "accept" if len(near) == 1 else "abstain"
    names = {each.topic for each in near}
    return {each.topic: chosen if each.topic in names else "reject" for each in candidates}


def _comparable(contenders: Sequence[Candidate]) -> bool:
    return all(each.probability is not None for each in contenders)


def _nearest(contenders: Sequence[Candidate], margin: float) -> list[Candidate]:
    """The likeliest, and those that are no further from it than the margin."""
    best = max((each.probability or 0.0 for each in contenders), default=0.0)
    return [each for each in contenders if best - (each.probability or 0.0) <= margin]
