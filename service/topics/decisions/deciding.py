"""Deciding: documents in, a verdict of each topic out. No Redis, no learning, no lock.

    documents  →  features, idf  →  scores against a snapshot of the bank  →  rules  →  verdicts

Topics of which one may accept are decided together once the verdict of each is final (groups.py, called by results.py).
So with one of them all have verdicts here, requested or not.

Where topics go by meaning, a batch is also projected once under each projection that they use, which is one, or two
while topics move from one to the next.

If a request names no topics, only those that may not reject have a verdict: nearly every topic rejects nearly every
document, and the bank does not list those.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from models.bank.seen import Matrix
from models.bank.segment import IndexedTopic
from models.bank.snapshot import Snapshot
from models.core.vectors import Bag, Singles
from models.text.analysis import Bags, bags
from service.errors import NotFound, TooLarge
from service.schemas import ClassifyOptions, Decision, Document
from service.topics.background import Epoch
from service.topics.decisions.groups import OneOf
from service.topics.decisions.registry import Registry, ServedTopic
from service.topics.decisions.rules import DECIDES, RuleName
from service.topics.published import DIGITS, decide, decide_together

MAX_VERDICTS, MAX_EXPLAINED = 1_000_000, 10_000  # in a response; a hundred bytes each, and several thousand

_TOPIC_NAME = attrgetter("topic.name")


class TopicVerdict(NamedTuple):
    """What a topic, as the snapshot has it, makes of a document."""

    topic: ServedTopic
    score: float
    rule: RuleName | None = None  # that overrules the model
    members: tuple[float, ...] = ()  # the scores whose mean it is, where a committee votes
    group: Decision | None = None  # what its group makes of it, where that is something else

    @property
    def decision(self) -> Decision:
        topic, score, rule, members, group = self  # faster than by name, and this runs for each decision
        if group:
            return group
        if rule:
            return DECIDES[rule]
        if topic.voting:
            return decide_together(members, topic.reject_below, topic.accept_above, topic.voting)
        return decide(score, topic.reject_below, topic.accept_above)

    @property
    def probability(self) -> float | None:
        """The probability that the document is relevant; None where a rule decides, or too little has been judged."""
        calibration = self.topic.calibration
        if self.rule or calibration is None:
            return None
        return round(calibration.probability(self.score), DIGITS)


@dataclass(frozen=True, slots=True)
class Decided:
    """Documents, their ids and features, and the verdicts on each."""

    documents: Sequence[Document]
    ids: list[str]
    bags: Bags
    idf: Singles
    verdicts: list[list[TopicVerdict]]
    groups: Sequence[OneOf] = ()  # those that the topics are in; all of their topics have verdicts

    def bag(self, place: int) -> Bag:
        return bag_of(self.bags, self.idf, place)


def decide_documents(
    registry: Registry,
    documents: Sequence[Document],
    options: ClassifyOptions,
    epoch: Epoch,
    *,
    apply_rules: bool = True,
) -> Decided:
    """The verdicts of topics that may not reject, or of those requested; without rules, those of the models alone."""
    counted = bags([(document.title, document.text) for document in documents], registry.analysis)
    idf = epoch.frequencies.idf(counted.features)
    ids = [document.id or content_id(document) for document in documents]
    snapshot, limit, topics = registry.snapshot(), max_verdicts(options), options.topics
    groups = registry.groups.among(topics)
    together = sorted({topic for group in groups for topic in group.topics if snapshot.get(topic)})
    ruling = topics and {*topics, *together}
    ruled = [registry.rules.decides(document, ruling) if apply_rules else {} for document in documents]
    if topics is None and options.include == "all":
        topics = sorted(topic.name for topic in snapshot)
    seen = _seen(registry, snapshot, counted, idf)
    if topics is None:
        rows = _not_rejected(snapshot, seen, ruled, limit)
    else:
        rows = _scored(snapshot, seen, list(dict.fromkeys(topics)), limit)
    if together:
        rows = _completed(rows, _scored(snapshot, seen, together, MAX_VERDICTS))
    verdicts = [_with_rules(row, rules) if rules else row for row, rules in zip(rows, ruled, strict=True)]
    return Decided(documents, ids, counted, idf, verdicts, groups)


def verdicts_of(
    registry: Registry, topic: str, documents: Sequence[Document], epoch: Epoch
) -> tuple[Bags, list[TopicVerdict]]:
    """The features of documents, and the verdicts of one topic on them."""
    counted = bags([(document.title, document.text) for document in documents], registry.analysis)
    verdicts = verdicts_of_bags(registry, topic, counted, epoch.frequencies.idf(counted.features))
    ruled = (registry.rules.of(topic, document) for document in documents)
    return counted, [verdict._replace(rule=rule) for verdict, rule in zip(verdicts, ruled, strict=True)]


def verdicts_of_bags(registry: Registry, topic: str, counted: Bags, idf: Singles) -> list[TopicVerdict]:
    """The verdicts of one topic's model on documents that were analysed before."""
    snapshot = registry.snapshot()
    rows = _scored(snapshot, _seen(registry, snapshot, counted, idf), [topic], len(counted))
    return [verdict for (verdict,) in rows]


def max_verdicts(options: ClassifyOptions) -> int:
    """The most decisions that a response may have."""
    return MAX_EXPLAINED if options.explain else MAX_VERDICTS


def bag_of(counted: Bags, idf: Singles, i: int) -> Bag:
    part = slice(counted.indptr[i], counted.indptr[i + 1])
    return Bag(counted.features[part], counted.counts[part], idf[part])


def content_id(document: Document) -> str:
    """The id of a document that came without one: the same for the same title and text."""
    return blake2b(f"{document.title}\0{document.text}".encode(), digest_size=16).hexdigest()


def _with_rules(verdicts: Sequence[TopicVerdict], rules: Mapping[str, RuleName]) -> list[TopicVerdict]:
    return [verdict._replace(rule=rules.get(verdict.topic.name)) for verdict in verdicts]


def _completed(
    rows: Iterable[list[TopicVerdict]], others: Iterable[list[TopicVerdict]]
) -> Iterator[list[TopicVerdict]]:
    """The verdicts on each document, with those of other topics that have none yet behind them."""
    for row, more in zip(rows, others, strict=True):
        there = {verdict.topic.name for verdict in row}
        yield [*row, *(verdict for verdict in more if verdict.topic.name not in there)]


def _verdict(indexed: IndexedTopic[ServedTopic], scores: Sequence[float], start: int) -> TopicVerdict:
    """The verdict of the topic whose scores begin there."""
    topic = indexed.payload
    if topic.voting is None:
        return TopicVerdict(topic, scores[start])
    members = tuple(scores[start : start + indexed.columns])
    return TopicVerdict(topic, sum(members) / len(members), members=members)


def _check_count(verdicts: int, limit: int) -> None:
    if verdicts > limit:
        raise TooLarge(f"This would be more than {limit:,} such decisions; ask for fewer topics or documents at once.")


class _Seen(NamedTuple):
    """Documents as the bank takes them."""

    bags: Bags
    idf: Singles
    latent: Mapping[int, Matrix]  # their latent values, by the tag of the projection


def _seen(registry: Registry, snapshot: Snapshot[ServedTopic], counted: Bags, idf: Singles) -> _Seen:
    return _Seen(counted, idf, registry.latent(snapshot, counted, idf))


def _scored(
    snapshot: Snapshot[ServedTopic], seen: _Seen, topics: list[str], limit: int
) -> Iterator[list[TopicVerdict]]:
    """The verdicts of these topics on each document, whatever they decide."""
    _check_count(len(seen.bags) * len(topics), limit)
    entries = [snapshot.get(topic) for topic in topics]
    for topic, indexed in zip(topics, entries, strict=True):
        if indexed is None:
            raise NotFound.topic(topic)
    scores = snapshot.score(seen.bags, seen.idf, topics, latent=seen.latent)
    starts = accumulate((indexed.columns for indexed in entries if indexed), initial=0)
    columns = [(indexed, start) for indexed, start in zip(entries, starts, strict=False) if indexed]
    for row in scores.tolist():
        yield [_verdict(indexed, row, start) for indexed, start in columns]


def _not_rejected(
    snapshot: Snapshot[ServedTopic], seen: _Seen, ruled: Sequence[dict[str, RuleName]], limit: int
) -> Iterator[list[TopicVerdict]]:
    """The verdicts that do not reject, and those that a rule turns into an acceptance."""
    hits = snapshot.hits(seen.bags, seen.idf, latent=seen.latent)
    _check_count(len(hits.topics), limit)
    bounds = np.searchsorted(hits.documents, np.arange(len(seen.bags) + 1)).tolist()
    numbers, starts, scores = hits.topics.tolist(), hits.starts.tolist(), hits.scores.tolist()
    topics = {number: snapshot.topic(number) for number in set(numbers)}  # each looked up once, not for every hit
    accepting = sorted({topic for rules in ruled for topic, rule in rules.items() if rule == "accept_if"})
    accepting = [topic for topic in accepting if snapshot.get(topic)]
    rows = list(_scored(snapshot, seen, accepting, limit)) if accepting else []
    verdicts = [_verdict(topics[number], scores, start) for number, start in zip(numbers, starts, strict=False)]
    for i, (first, end) in enumerate(pairwise(bounds)):
        row = verdicts[first:end]
        if rows:
            missing = ruled[i].keys() - {verdict.topic.name for verdict in row}
            row += [verdict for verdict in rows[i] if verdict.topic.name in missing]
        row.sort(key=_TOPIC_NAME)
        yield row
