"""The topics that this process serves: their published models, and the bank that scores documents against all of them.

Readers take a snapshot of the bank, so a model that changes meanwhile changes only the next classification; thresholds
and version of a verdict come from the same snapshot as its score. No Redis here, and no lock for readers.
"""

import time
from collections.abc import Iterable, Sequence
from math import inf
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from models.bank.bank import Bank
from models.bank.seen import Matrix
from models.bank.segment import BankEntry
from models.bank.snapshot import Snapshot
from models.core.arrays import check
from models.core.vectors import Singles
from models.goals.sigmoid import Calibration
from models.online.committee import VotingRule
from models.text.analysis import Analysis, Bags
from models.text.projection import Projection
from service.errors import NotFound
from service.schemas import Rules
from service.store.stream.outbox import GONE_S
from service.topics.decisions.groups import TopicGroups
from service.topics.decisions.rules import TopicRules
from service.topics.published import PublishedModel


class ServedTopic(NamedTuple):
    """What turns a topic's scores into a decision; the bank keeps it beside the weights."""

    name: str
    reject_below: float
    accept_above: float
    version: int
    calibration: Calibration | None
    voting: VotingRule | None  # how the members of a committee decide together
    certain: bool | None = None  # whether its goal for what is accepted can be promised; None without such a goal
    projection: Projection | None = None  # under which it sees documents


class Registry:
    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.topics: dict[str, PublishedModel] = {}
        self.rules = TopicRules()
        self.groups = TopicGroups()
        self._bank: Bank[ServedTopic] = Bank()
        # By tag: those of the topics in the bank, and in snapshots of it that are still read.
        self._projections: WeakValueDictionary[int, Projection] = WeakValueDictionary()
        self._writing = Lock()  # so that bank and topics change together; readers do not take it
        self._merged = True  # nothing has been put or removed since the bank was last merged
        self._deleted: dict[str, float] = {}  # when topics were deleted, by `born`, on the monotonic clock
        self._youngest_ms = 0  # when the youngest of all topics served so far was created

    def load(self, models: Iterable[PublishedModel]) -> None:
        """Serves many topics at once, when the process starts."""
        topics = {model.topic: model for model in models}
        with self._writing:
            for model in topics.values():
                self._note_projection(model)
            self._bank.load(_entry(model) for model in topics.values())
            self.topics.update(topics)
            self.rules.put({topic: model.settings.rules for topic, model in topics.items()})
            self.groups.put({topic: model.settings.group for topic, model in topics.items()})
            self._youngest_ms = max([self._youngest_ms, *(model.settings.created_ms for model in topics.values())])

    def put(self, model: PublishedModel) -> None:
        """Serves this version from now on, unless a newer one of the same topic is served already."""
        with self._writing:
            current = self.topics.get(model.topic)
            if current and current.born == model.born and current.version >= model.version:
                return
            if time.monotonic() - self._deleted.get(model.born, -inf) < GONE_S:
                return
            self._note_projection(model)
            self._bank.put(_entry(model))
            self.rules.put({model.topic: model.settings.rules})
            self.groups.put({model.topic: model.settings.group})
            self.topics[model.topic] = model
            self._merged = False
            self._youngest_ms = max(self._youngest_ms, model.settings.created_ms)

    def delete(self, topic: str) -> None:
        """Stops serving a topic that was deleted, even if a task is just loading it and puts it later."""
        now = time.monotonic()
        with self._writing:
            self._deleted = {born: at for born, at in self._deleted.items() if now - at < GONE_S}
            if current := self.topics.get(topic):
                self._deleted[current.born] = now
        self.remove(topic)

    def remove(self, topic: str) -> None:
        """Stops serving a topic, until it is put again."""
        with self._writing:
            if self.topics.pop(topic, None):
                self._bank.remove(topic)
                self._merged = False
                self.rules.put({topic: Rules()})
                self.groups.put({topic: None})

    def get(self, topic: str) -> PublishedModel:
        if topic not in self.topics:
            raise NotFound.topic(topic)
        return self.topics[topic]

    def snapshot(self) -> Snapshot[ServedTopic]:
        return self._bank.snapshot()

    def latent(self, snapshot: Snapshot[ServedTopic], counted: Bags, idf: Singles) -> dict[int, Matrix]:
        """The latent values of documents under each projection that topics of the snapshot use, by its tag."""
        return {tag: self._projections[tag].latent_batch(counted, idf) for tag in snapshot.projections}

    def created_after(self, at_ms: int, topics: Sequence[str] | None) -> frozenset[str]:
        """Those of the topics (None: all) that were created after that moment."""
        if self._youngest_ms <= at_ms:
            return frozenset()
        models = ((topic, self.topics.get(topic)) for topic in list(self.topics if topics is None else topics))
        return frozenset(topic for topic, model in models if model and model.settings.created_ms > at_ms)

    @property
    def bank_bytes(self) -> int:
        """The size of the indexes that documents are scored with."""
        parts = (part for segment in self._bank.snapshot().segments for part in segment.body.parts)
        return sum(part.index.nbytes + part.index.postings.dense.nbytes for part in parts)

    def _note_projection(self, model: PublishedModel) -> None:
        check(model.projection is not None or not model.projected, "the projection of a model must be loaded")
        if model.projection:
            self._projections.setdefault(model.projection.tag, model.projection)

    @property
    def wants_merging(self) -> bool:
        return not self._merged

    def merge(self) -> None:
        """Merges the bank's segments; readers and writers go on meanwhile, so call it from a thread."""
        self._merged = True
        while self._bank.merge():
            pass


def _entry(published: PublishedModel) -> BankEntry[ServedTopic]:
    model, committee = published.model, published.model.committee
    check(model.accept_above == model.accept_above, "accept_above must be a number")
    voting = committee.rule if committee else None
    columns = committee.members if committee and voting else (model.linear,)
    topic = ServedTopic(
        published.topic,
        model.reject_below,
        model.accept_above,
        published.version,
        model.calibration,
        voting,
        published.certain,
        published.projection,
    )
    return BankEntry(published.topic, columns, model.reject_below, topic)
