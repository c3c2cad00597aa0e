"""Decisions: documents in, verdicts out. No Redis, no learning, no lock.

Each process keeps every topic's published model in a bank, and what is said about the topic beside it. A classification
takes a snapshot of the bank, so a model that changes meanwhile changes it for the next one; thresholds and version of a
verdict come from the same snapshot as its score.

A document that repeats another (store/signatures.py) is decided like it, so that a word more or less does not tip it
over a threshold: what counts is what the models make of the first now. But a single word can be all that a topic looks
for ("backup failed" among a thousand "backup done"). So where the model accepts one and rejects the other, and where a
rule speaks, the document is decided by itself. There it is news, too, and counts; as it does in topics that are younger
than the first.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from math import inf
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json

from models.bank.bank import Bank
from models.bank.segment import Entry, IndexedTopic
from models.bank.snapshot import Snapshot
from models.core.arrays import check
from models.core.vectors import Bag, Singles
from models.goals.calibration import Calibration
from models.online.committee import VotingRule
from models.text.analysis import Analysis, Bags, bags, terms
from models.text.duplicates import are_duplicates
from models.text.function_words import ENGLISH
from models.text.minhash import signatures
from service.config import Config
from service.errors import NotFound, TooLarge
from service.schemas import ClassifyOptions, Decision, Document, Rules
from service.store.documents import unpacked
from service.store.outbox import GONE_S
from service.topics import explain
from service.topics.background import Epoch
from service.topics.published import DIGITS, PublishedModel, decide, decide_together
from service.topics.rules import DECIDES, RuleName, TopicRules

MOST_VERDICTS, MOST_EXPLAINED = 1_000_000, 10_000  # in one answer; a hundred bytes each, and several thousand
MODEL = "model"
OPPOSITE = {"accept", "reject"}
NONE: frozenset[str] = frozenset()


class ServedTopic(NamedTuple):
    """What turns a topic's scores into a decision; the bank keeps it beside the weights."""

    name: str
    reject_below: float
    accept_above: float
    version: int
    calibration: Calibration | None
    voting: VotingRule | None  # how the members of a committee decide together


class TopicVerdict(NamedTuple):
    """What a topic, as the snapshot has it, makes of a document."""

    topic: ServedTopic
    score: float
    rule: RuleName | None = None  # that overrules the model
    members: tuple[float, ...] = ()  # the scores whose mean it is, where a committee votes

    @property
    def decision(self) -> Decision:
        if self.rule:
            return DECIDES[self.rule]
        if self.topic.voting:
            return decide_together(self.members, self.topic.reject_below, self.topic.accept_above, self.topic.voting)
        return decide(self.score, self.topic.reject_below, self.topic.accept_above)

    @property
    def probability(self) -> float | None:
        """That the document is relevant; None where a rule decides, or too little has been judged to say."""
        calibration = self.topic.calibration
        if self.rule or calibration is None:
            return None
        return round(calibration.probability(self.score), DIGITS)

    def to_answer(self, decision: Decision) -> dict[str, Any]:
        return {
            "topic": self.topic.name,
            "decision": decision,
            "score": round(self.score, DIGITS),
            "probability": self.probability,
            "version": self.topic.version,
            "decided_by": self.rule or MODEL,
        }


class Kept(NamedTuple):
    """A document that a topic did not reject."""

    place: int  # of the document in its batch
    decision: Decision
    by_rule: bool
    score: float
    version: int  # of the model that decided


class First(NamedTuple):
    """A document that others repeat, and what models make of it."""

    document: Document
    came_ms: int
    bag: Bag
    verdicts: Sequence[TopicVerdict]

    @property
    def name(self) -> str:
        return str(self.document.id)


class Repeat(NamedTuple):
    """Which one a document repeats, and the topics to which it is news all the same."""

    first: str
    news_to: frozenset[str]


@dataclass(frozen=True, slots=True)
class Decided:
    """Documents, their ids and features, and the verdicts on each."""

    documents: Sequence[Document]
    ids: list[str]
    bags: Bags
    idf: Singles
    verdicts: list[list[TopicVerdict]]

    def bag(self, place: int) -> Bag:
        return bag_of(self.bags, self.idf, place)


@dataclass(frozen=True, slots=True)
class Classified:
    """Documents that were classified: their ids, their features, the answer for each, and, where they are to be stored,
    what each topic keeps."""

    ids: list[str]
    bags: Bags
    results: list[bytes]  # JSON
    kept: dict[str, list[Kept]]
    repeats: dict[int, Repeat]  # by place


class Serving:
    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.topics: dict[str, PublishedModel] = {}
        self._bank: Bank[ServedTopic] = Bank()
        self._overlay = TopicRules()
        self._writing = Lock()  # so that bank and topics change together; readers do not look at it
        self._tidy = True  # nothing has been put or removed since the bank was last merged
        self._ended: dict[str, float] = {}  # `born` of topics that ended, and when, by the monotonic clock
        self._youngest_ms = 0  # when the youngest topic was made that there ever was

    def load(self, served: Iterable[PublishedModel]) -> None:
        """Many topics at once, at the start."""
        topics = {one.topic: one for one in served}
        with self._writing:
            self._bank.load(_column(one) for one in topics.values())
            self.topics.update(topics)
            self._overlay.put({one.topic: one.settings.rules for one in topics.values()})
            self._youngest_ms = max([self._youngest_ms, *(one.settings.created_ms for one in topics.values())])

    def put(self, served: PublishedModel) -> None:
        """Serves this version from now on, unless a newer one of the same topic is being served."""
        with self._writing:
            standing = self.topics.get(served.topic)
            if standing and standing.born == served.born and standing.version >= served.version:
                return
            if time.monotonic() - self._ended.get(served.born, -inf) < GONE_S:
                return
            self._bank.put(_column(served))
            self._overlay.put({served.topic: served.settings.rules})
            self.topics[served.topic] = served
            self._tidy = False
            self._youngest_ms = max(self._youngest_ms, served.settings.created_ms)

    def end(self, topic: str) -> None:
        """The topic is not there any more, and whoever was just loading it comes too late."""
        now = time.monotonic()
        with self._writing:
            self._ended = {born: then for born, then in self._ended.items() if now - then < GONE_S}
            if standing := self.topics.get(topic):
                self._ended[standing.born] = now
        self.remove(topic)

    def remove(self, topic: str) -> None:
        with self._writing:
            if self.topics.pop(topic, None):
                self._bank.remove(topic)
                self._tidy = False
                self._overlay.put({topic: Rules()})

    @property
    def bank_bytes(self) -> int:
        """Of the indexes that documents are scored with."""
        parts = (part for segment in self._bank.snapshot().segments for part in segment.body.parts)
        return sum(part.index.nbytes + part.index.postings.dense.nbytes for part in parts)

    @property
    def wants_merging(self) -> bool:
        return not self._tidy

    def merge(self) -> None:
        """Tidies the bank; readers and writers go on meanwhile, so call it from a thread."""
        self._tidy = True
        while self._bank.merge():
            pass

    def get(self, topic: str) -> PublishedModel:
        if topic not in self.topics:
            raise NotFound.topic(topic)
        return self.topics[topic]

    def classify(self, documents: Sequence[Document], options: ClassifyOptions, epoch: Epoch) -> Classified:
        """What every topic, or those asked for, make of each document."""
        return self.answer(self.decide(documents, options, epoch), options, epoch, {})

    def decide(
        self, documents: Sequence[Document], options: ClassifyOptions, epoch: Epoch, *, ruling: bool = True
    ) -> Decided:
        """The verdicts of topics that may not reject, or of those asked for; without rules, those of models alone."""
        counted = bags([(document.title, document.text) for document in documents], self.analysis)
        idf = epoch.frequencies.idf(counted.features)
        ids = [document.id or content_id(document) for document in documents]
        snapshot = self._bank.snapshot()
        ruled = [self._overlay.decides(document, options.topics) if ruling else {} for document in documents]
        asked = options.topics
        if asked is None and options.include == "all":
            asked = sorted(column.name for column in snapshot)
        if asked is None:
            found = _not_rejected(snapshot, counted, idf, ruled, most(options))
        else:
            found = _scored(snapshot, counted, idf, list(dict.fromkeys(asked)), most(options))
        verdicts = [_by_rules(one, rules) if rules else one for one, rules in zip(found, ruled, strict=True)]
        return Decided(documents, ids, counted, idf, verdicts)

    def firsts(
        self,
        decided: Decided,
        repeated: Mapping[str, str],
        blobs: Iterable[bytes],
        options: ClassifyOptions,
        epoch: Epoch,
    ) -> dict[int, First]:
        """By place, the documents that others are said to repeat, as they are remembered; not those that have been
        given another text since."""
        known = [unpacked(blob) for blob in blobs]
        models = self.decide([one.document for one in known], options, epoch, ruling=False)
        signed, own = signatures(models.bags), signatures(decided.bags)
        at = {name: i for i, name in enumerate(models.ids)}
        found: dict[int, First] = {}
        for place, name in enumerate(decided.ids):
            i = at.get(repeated.get(name, ""))
            if i is not None and are_duplicates(signed[i], own[place]):
                found[place] = First(known[i].document, known[i].came_ms, models.bag(i), models.verdicts[i])
        return found

    def answer(
        self, decided: Decided, options: ClassifyOptions, epoch: Epoch, firsts: Mapping[int, First]
    ) -> Classified:
        """The answers; documents at some places repeat others."""
        results: list[bytes] = []
        kept: dict[str, list[Kept]] = {}
        repeats: dict[int, Repeat] = {}
        shown_all = options.topics is not None or options.include == "all"
        for i, own in enumerate(decided.verdicts):
            first = firsts.get(i)
            verdicts, alike = _like(own, first.verdicts) if first else (own, NONE)
            decisions = []
            for verdict in verdicts:
                decision = verdict.decision
                if decision == "reject" and not shown_all:
                    continue
                if decision != "reject" and options.store:
                    kept.setdefault(verdict.topic.name, []).append(_kept(i, verdict, decision))
                decisions.append(verdict.to_answer(decision))
            if options.explain and decisions:
                by_itself = [one for one in decisions if one["topic"] not in alike]
                self._explain(by_itself, decided.documents[i], decided.bag(i), epoch)
            result: dict[str, Any] = {"document": decided.ids[i], "decisions": decisions}
            if first:
                result["duplicate_of"] = first.name
                otherwise = {one["topic"] for one in decisions if one["decision"] != "reject"} - alike
                repeats[i] = Repeat(first.name, self._younger(first.came_ms, options.topics) | otherwise)
                if options.explain:
                    as_the_first = [one for one in decisions if one["topic"] in alike]
                    self._explain(as_the_first, first.document, first.bag, epoch)
            results.append(to_json(result))
        return Classified(decided.ids, decided.bags, results, kept, repeats)

    def _younger(self, than_ms: int, topics: Sequence[str] | None) -> frozenset[str]:
        """The topics that were made after that moment, of those asked for."""
        if self._youngest_ms <= than_ms:
            return NONE
        some = self.topics if topics is None else topics
        served = ((topic, self.topics.get(topic)) for topic in list(some))
        return frozenset(topic for topic, one in served if one and one.settings.created_ms > than_ms)

    def rule(self, topic: str, document: Document) -> RuleName | None:
        """The topic's rule that decides about the document, if one does."""
        return self._overlay.decides(document, [topic]).get(topic)

    def look(self, topic: str, documents: Sequence[Document], epoch: Epoch) -> tuple[Bags, list[TopicVerdict]]:
        """What a topic makes of these documents now."""
        counted = bags([(document.title, document.text) for document in documents], self.analysis)
        idf = epoch.frequencies.idf(counted.features)
        rows = _scored(self._bank.snapshot(), counted, idf, [topic], len(documents))
        ruled = (self.rule(topic, document) for document in documents)
        return counted, [verdict._replace(rule=rule) for (verdict,), rule in zip(rows, ruled, strict=True)]

    def _explain(self, decisions: Sequence[dict[str, Any]], document: Document, seen: Bag, epoch: Epoch) -> None:
        words = self._surfaces(document.title, document.text)
        for decision in decisions:
            served = self.topics.get(decision["topic"])
            if not served or served.version != decision["version"]:
                # A version that was published between the snapshot and now has other weights: nothing true to say.
                decision |= {"explanation": None, "flip": None}
                continue
            decision["explanation"] = explain.explain(served, seen, words)
            pins = zip(served.settings.single.pin, served.settings.read.pin, strict=True)
            query = dict(pins) | self._surfaces("", served.settings.query)
            found = (decision["decision"], seen, words, query, epoch.frequencies.idf)
            decision["flip"] = explain.flip(served, *found) if decision["decided_by"] == MODEL else None

    def _surfaces(self, title: str, text: str) -> dict[int, str]:
        """The words behind the features of a text, as it has them."""
        return {feature: term.surface for feature, term in terms(title, text, self.analysis).items()}


def analysis_of(config: Config) -> Analysis:
    """How this deployment reads text."""
    return Analysis(
        title_weight=config.title_weight,
        stemmer=config.stemmer,
        stop_words=ENGLISH if config.stop_words else frozenset(),
        bigrams=config.bigrams,
    )


def most(options: ClassifyOptions) -> int:
    """Decisions in one answer."""
    return MOST_EXPLAINED if options.explain else MOST_VERDICTS


def bag_of(counted: Bags, idf: Singles, i: int) -> Bag:
    part = slice(counted.indptr[i], counted.indptr[i + 1])
    return Bag(counted.features[part], counted.counts[part], idf[part])


def content_id(document: Document) -> str:
    """The id of a document that came without one: the same for the same title and text."""
    return blake2b(f"{document.title}\0{document.text}".encode(), digest_size=16).hexdigest()


def _column(served: PublishedModel) -> Entry[ServedTopic]:
    model, together = served.model, served.model.committee
    check(model.accept_above == model.accept_above, "accept_above must be a number")
    voting = together.rule if together else None
    columns = together.members if together and voting else (model.linear,)
    topic = ServedTopic(served.topic, model.reject_below, model.accept_above, served.version, model.calibration, voting)
    return Entry(served.topic, columns, model.reject_below, topic)


def _by_rules(verdicts: Sequence[TopicVerdict], rules: Mapping[str, RuleName]) -> list[TopicVerdict]:
    return [verdict._replace(rule=rules.get(verdict.topic.name)) for verdict in verdicts]


def _like(own: Sequence[TopicVerdict], first: Sequence[TopicVerdict]) -> tuple[list[TopicVerdict], set[str]]:
    """The verdicts on a document that repeats another, and the topics in which it is decided as that one is.

    A topic that has no verdict rejects.
    """
    mine, theirs = ({verdict.topic.name: verdict for verdict in some} for some in (own, first))
    verdicts, alike = [], set()
    for topic in mine if mine.keys() >= theirs.keys() else sorted(mine.keys() | theirs.keys()):
        verdict, other = mine.get(topic), theirs.get(topic)
        said = {verdict.decision if verdict else "reject", other.decision if other else "reject"}
        if (verdict and verdict.rule) or said == OPPOSITE:
            verdicts += [verdict] if verdict else []
        else:
            verdicts += [other] if other else []
            alike.add(topic)
    return verdicts, alike


def _verdict(column: IndexedTopic[ServedTopic], scores: Sequence[float], start: int) -> TopicVerdict:
    """Of the topic whose scores begin there."""
    topic = column.payload
    if topic.voting is None:
        return TopicVerdict(topic, scores[start])
    members = tuple(scores[start : start + column.columns])
    return TopicVerdict(topic, sum(members) / len(members), members=members)


def _kept(place: int, verdict: TopicVerdict, decision: Decision) -> Kept:
    return Kept(place, decision, verdict.rule is not None, round(verdict.score, DIGITS), verdict.topic.version)


def _affordable(verdicts: int, most: int) -> None:
    if verdicts > most:
        raise TooLarge(f"This would be more than {most:,} such decisions; ask for fewer topics or documents at once.")


def _scored(
    snapshot: Snapshot[ServedTopic], counted: Bags, idf: Singles, topics: list[str], most: int
) -> Iterator[list[TopicVerdict]]:
    _affordable(len(counted) * len(topics), most)
    columns = [snapshot.get(topic) for topic in topics]
    for topic, column in zip(topics, columns, strict=True):
        if column is None:
            raise NotFound.topic(topic)
    scores = snapshot.score(counted, idf, topics)
    starts = accumulate((column.columns for column in columns if column), initial=0)
    begins = [(column, start) for column, start in zip(columns, starts, strict=False) if column]
    for row in scores.tolist():
        yield [_verdict(column, row, start) for column, start in begins]


def _not_rejected(
    snapshot: Snapshot[ServedTopic], counted: Bags, idf: Singles, ruled: Sequence[dict[str, RuleName]], most: int
) -> Iterator[list[TopicVerdict]]:
    """What the models do not reject, and what a rule accepts although they do."""
    hits = snapshot.hits(counted, idf)
    _affordable(len(hits.topics), most)
    bounds = np.searchsorted(hits.documents, np.arange(len(counted) + 1))
    numbers, starts, scores = hits.topics.tolist(), hits.starts.tolist(), hits.scores.tolist()
    columns = {number: snapshot.topic(number) for number in set(numbers)}  # each looked up once, not for every hit
    wanted = sorted({topic for one in ruled for topic, rule in one.items() if rule == "accept_if"})
    wanted = [topic for topic in wanted if snapshot.get(topic)]
    rows = list(_scored(snapshot, counted, idf, wanted, most)) if wanted else []
    for i in range(len(counted)):
        verdicts = {}
        for h in range(bounds[i], bounds[i + 1]):
            column = columns[numbers[h]]
            verdicts[column.name] = _verdict(column, scores, starts[h])
        for verdict in rows[i] if rows else ():
            if verdict.topic.name in ruled[i]:
                verdicts.setdefault(verdict.topic.name, verdict)
        yield [verdict for _, verdict in sorted(verdicts.items())]
