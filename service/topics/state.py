"""A topic's state in memory: its log, what the log resolves to, and the trainer that has learned it.

    state = fold(learn, base or query, log)

    one more judgement at the end      the trainer learns it, which is cheap
    anything else                      the fold starts again from the base or the query

There is no inverse of learning. The log is folded under the projection of the epoch that its newest event names
(projections.py); when that is another one, it is folded again. No Redis here and no event loop: `learning.py` calls
this in a thread.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from models.core.latent import tag_of
from models.core.vectors import Bag
from models.online.model import Example, Spec
from models.online.pocket import PocketParams
from models.online.trainer import Trainer
from models.text.analysis import features_of_lines
from models.text.minhash import Groups
from models.text.projection import Projection
from service.store import codec
from service.store.events import Event, Head
from service.store.resolve import Resolved, StandingJudgement, obsolete, resolve, without
from service.topics.background import Epoch
from service.topics.projections import NumberedProjection
from service.topics.published import Base, PublishedModel, Recipe
from service.topics.settings import TopicSettings, targets_of

CAUSES = {
    "judged": "feedback",
    "withdrawn": "feedback",
    "created": "create",
    "edited": "edit",
    "refreshed": "refresh",
    "restored": "restore",
    "compacted": "forget",
}
SLACK = 0.1  # a log may exceed its limit by this share before it is compacted, since that refolds it
EVENT_BYTES = 500  # of an event in memory, besides its features, words and model


class TopicState:
    def __init__(
        self, topic: str, head: Head, events: Sequence[Event], weights: int, new_trainer: type[Trainer] = Trainer
    ) -> None:
        self.topic = topic
        self.head = head
        self.events = list(events)
        self.resolved = resolve(self.events)
        self.published: PublishedModel | None = None
        self._compact_from = 0  # events in the log before it is worth trying to compact it
        self._weights = weights
        self._new_trainer = new_trainer
        self._bytes = sum(map(_size, self.events))
        self._grouped: Groups | None = None
        self._numbered: NumberedProjection | None = None
        self._folded: Trainer | None = None  # None until it is needed

    def fold_under(self, projection: NumberedProjection | None) -> None:
        """Folds the log under this projection, that of the epoch that its newest event names, unless it is already."""
        number = projection.number if projection else 0
        if number != (self._numbered.number if self._numbered else 0):
            self._numbered, self._folded = projection, None
        self._trainer()

    def advance(self, head: Head, tail: Sequence[Event], gone: Sequence[int] = ()) -> None:
        """Learns the events that directly follow those it has, and drops those that were removed from the log."""
        refold = False
        self.head = head
        self._grouped = None
        if gone:
            self.events = without(self.events, gone)
            self._bytes = sum(map(_size, self.events))
        for event in tail:
            self.events.append(event)
            self._bytes += _size(event)
            if event.kind == "restored":
                self.resolved, refold = resolve(self.events), True
                continue
            change = self.resolved.take(event)
            if change == "one more" and self._folded and not refold:
                self._folded.learn(example(self.resolved.judged[event.document]))
            refold |= change == "anything"
        if refold:
            self._folded = None

    def compaction(self, kept: int, versions: int) -> tuple[int, list[int]] | None:
        """How to compact the log, if it has clearly more than so many judgements, or events that none of the newest
        so many versions needs: the oldest version that can be restored then, and events to be removed."""
        slack = int(SLACK * kept) + 1
        full = len(self.resolved.judged) >= kept + slack
        if not full and len(self.events) < max(self._compact_from, kept + slack + versions):
            return None
        floor = max(self.head.floor, self.resolved.version - versions)
        gone = obsolete(self.events, floor) if floor > self.head.floor else []
        pays = full or len(gone) >= slack
        self._compact_from = len(self.events) - (len(gone) if pays else 0) + slack
        return (floor, gone) if pays else None

    def build_model(self, epoch: Epoch) -> PublishedModel:
        """Builds the model as of the last event, under the projection and with thresholds for the background of the
        epoch that this event names."""
        self.fold_under(epoch.projection)
        model = self._trainer().model(epoch.background)
        if not np.isfinite(model.linear.weights).all():
            raise ArithmeticError(f"topic {self.topic}: learning gave a weight that is not finite")
        version, counts = self.resolved.version, self.resolved.counts()
        published = PublishedModel(self.topic, self.head.born, version, epoch.number, self.settings, model, *counts)
        return published.under(epoch.projection)

    def record(self, published: PublishedModel, digest: str) -> str:
        """The entry of this version in the list of versions, as JSON."""
        newest = self.events[-1]
        recipe = Base.from_bytes(newest.model).recipe if newest.kind == "published" else None
        learner = recipe.method if recipe else published.settings.learner.kind
        return version_record(newest, learner, asdict(published.model.figures), digest)

    @property
    def settings(self) -> TopicSettings:
        return settings_of(self.resolved)

    def terms(self) -> dict[int, str]:
        """The words of all features that came with a judgement, the settings or a published model, by feature."""
        resolved = self.resolved
        base = [resolved.base.words] if resolved.base and resolved.base.words else []
        judged = (standing.first.features for standing in resolved.judged.values())
        blobs = [resolved.settings.features, *base, *judged]
        read = self.settings.read
        pinned = "\n".join([*read.pin, *read.ban]).encode()
        lines = b"\n".join(filter(None, (pinned, *(codec.unpack_bag(blob)[0] for blob in blobs))))
        return dict(zip(features_of_lines(lines).tolist(), lines.decode().split("\n"), strict=True)) if lines else {}

    def distinct_judgements(self) -> list[StandingJudgement]:
        """The judgements in force, one for each group of near-duplicates."""
        judgements = list(self.resolved.judged.values())
        if self.resolved.base is None:
            return list(compress(judgements, self._trainer().unique.tolist()))
        group = self._groups().group
        return [standing for n, standing in enumerate(judgements) if group[n] == n]

    def published_by(self, job: str) -> int:
        """The version in which the job published its model; 0 if it has not."""
        published = (event.seq for event in self.events if event.kind == "published" and event.job == job)
        return max(published, default=0)

    def judged_since(self, version: int) -> int:
        """The number of judgements and withdrawals after that version; of all events, if some were compacted away."""
        if version < self.head.floor:
            return self.resolved.version - version
        return sum(event.kind in ("judged", "withdrawn") for event in self.events if event.seq > version)

    def recipe_if_stale(self, documents: Collection[str]) -> Recipe | None:
        """How the base was fitted, if one of these documents was part of it with a label that has changed since, or if
        it was fitted under another projection, so that its latent weights do not count any more."""
        if self.resolved.base is None:
            return None
        base, resolved = Base.from_bytes(self.resolved.base.model), self.resolved
        stale = any(document in base.fitted and resolved.is_stale_for(document) for document in documents)
        tag = tag_of(base.model.linear.features)
        own = self._numbered.projection.tag if self._numbered and self.settings.semantic else None
        return base.recipe if stale or tag not in (None, own) else None

    def snapshot(self) -> tuple[Resolved, dict[str, float]]:
        """A copy of what the log resolves to, to be folded with other settings, and the held-out scores by document."""
        return replace(self.resolved, judged=dict(self.resolved.judged)), self._trainer().held_out()

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """MinHash signatures of the judged documents, in their order."""
        return self._trainer().signatures if self.resolved.base is None else self._groups().signatures

    def _groups(self) -> Groups:
        """Groups of near-duplicates among all judged documents. With a base, the trainer has only those that were
        added to it: not all that the base was made from."""
        if self._grouped is None:
            self._grouped = Groups()
            for standing in self.resolved.judged.values():
                self._grouped.add(to_bag(standing.first.features).features)
        return self._grouped

    @property
    def nbytes(self) -> int:
        return (self._folded.nbytes if self._folded else 0) + self._bytes

    def _trainer(self) -> Trainer:
        if self._folded is None:
            projection = self._numbered.projection if self._numbered else None
            self._folded = train(self.resolved, self._weights, projection, self._new_trainer)
        return self._folded


def version_record(event: Event, learner: str, metrics: Mapping[str, float | None] | None, digest: str | None) -> str:
    """The entry in the list of versions of the model that an event led to, as JSON."""
    cause = event.cause or CAUSES[event.kind]
    fields = {"created_ms": event.at_ms, "cause": cause, "learner": learner, "metrics": metrics, "digest": digest}
    return json.dumps(fields)


def settings_of(resolved: Resolved) -> TopicSettings:
    return TopicSettings.model_validate(json.loads(resolved.settings.settings))


def spec_of(resolved: Resolved) -> Spec:
    """The part of a topic's settings and query that a trainer has to know."""
    settings = settings_of(resolved)
    query = to_bag(resolved.settings.features)
    goal, vectors = targets_of(settings), PocketParams(**settings.pocket.model_dump())
    learner = settings.learner
    return Spec(
        learner.kind, learner.params, query if len(query.features) else None, goal, settings.pinned_terms, vectors
    )


def train(
    resolved: Resolved, weights: int, projection: Projection | None = None, new_trainer: type[Trainer] = Trainer
) -> Trainer:
    """Folds all judgements in force, from the base if there is one, or from the query; under the projection, if the
    topic goes by meaning."""
    trainer = _started(resolved, weights, projection, new_trainer)
    for standing in resolved.to_fold():
        trainer.learn(example(standing))
    return trainer


def to_bag(blob: bytes) -> Bag:
    """The bag that was logged, its features hashed from their words."""
    words, counts, idf = codec.unpack_bag(blob)
    features = features_of_lines(words)
    order = np.argsort(features)
    return Bag(features[order], counts[order], idf[order])


def example(standing: StandingJudgement) -> Example:
    first = standing.first
    evidence = standing.origin, first.chance, standing.delivered == "accept", first.came_ms, first.after
    return Example(first.document, standing.relevant, to_bag(first.features), *evidence)


def _started(resolved: Resolved, weights: int, projection: Projection | None, new_trainer: type[Trainer]) -> Trainer:
    spec = spec_of(resolved)
    if not settings_of(resolved).semantic:
        projection = None
    if resolved.base is None:
        return new_trainer(spec, projection=projection, weights=weights)
    base = Base.from_bytes(resolved.base.model)
    trainer = new_trainer(spec, projection=projection, base=base.model, fitted=base.fitted, weights=weights)
    for standing in resolved.base_judgements():
        if standing.first.document in base.fitted:
            trainer.add_fitted(example(standing))
    return trainer


def _size(event: Event) -> int:
    return len(event.features) + len(event.words) + len(event.model) + EVENT_BYTES
