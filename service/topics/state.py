"""A topic in hand: its log, what stands, and the fold over it, kept so that one more judgement is cheap.

    one more judgement at the end      the trainer learns it
    anything else                      the fold starts again from the base or the query, over what stands now

Never an inverse of learning. No Redis here and no event loop: `learning.py` calls this in a thread.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Bag
from models.goals.promises import Targets
from models.online.model import Example, Spec
from models.online.trainer import Trainer
from models.text.analysis import features_of_lines
from models.text.minhash import Groups
from service.store import codec
from service.store.events import Event, Head
from service.store.resolve import Resolved, StandingJudgement, resolve, without
from service.topics.background import Epoch
from service.topics.published import Base, PublishedModel, Recipe
from service.topics.settings import TopicSettings

CAUSES = {
    "judged": "feedback",
    "withdrawn": "feedback",
    "created": "create",
    "edited": "edit",
    "refreshed": "refresh",
    "restored": "restore",
    "compacted": "forget",
}


class TopicState:
    def __init__(self, topic: str, head: Head, events: Sequence[Event], weights: int) -> None:
        self.topic = topic
        self.head = head
        self.events = list(events)
        self.resolved = resolve(self.events)
        self.published: PublishedModel | None = None
        self.compact_from = 0  # so long a log is worth another look
        self._weights = weights
        self._bytes = sum(map(_size, self.events))
        self._grouped: Groups | None = None
        self._trainer = self._start()

    def advance(self, head: Head, tail: Sequence[Event], gone: Sequence[int] = ()) -> None:
        """Takes events that come directly after those it has, and lets go of those that have left the log."""
        again = False
        self.head = head
        self._grouped = None
        if gone:
            self.events = without(self.events, gone)
            self._bytes = sum(map(_size, self.events))
        for event in tail:
            self.events.append(event)
            self._bytes += _size(event)
            if event.kind == "restored":
                self.resolved, again = resolve(self.events), True
            elif self.resolved.take(event):
                if not again:
                    self._trainer.learn(example(self.resolved.judged[event.document]))
            else:
                again = True
        if again:
            self._trainer = self._start()

    def build_model(self, epoch: Epoch) -> PublishedModel:
        """The model as of the last event, against the background that this event names."""
        model = self._trainer.model(epoch.background)
        if not np.isfinite(model.linear.weights).all():
            raise ArithmeticError(f"topic {self.topic}: learning gave a weight that is not finite")
        version, counts = self.resolved.version, self.resolved.counts()
        return PublishedModel(self.topic, self.head.born, version, epoch.number, self.settings, model, *counts)

    def record(self, served: PublishedModel, digest: str) -> str:
        """What the list of versions says of this one."""
        newest = self.events[-1]
        recipe = Base.from_bytes(newest.model).recipe if newest.kind == "published" else None
        learner = recipe.method if recipe else served.settings.learner.kind
        return record(newest, learner, asdict(served.model.figures), digest)

    @property
    def settings(self) -> TopicSettings:
        return TopicSettings.model_validate(json.loads(self.resolved.settings.settings))

    def terms(self) -> dict[int, str]:
        """The word of every feature that a judgement, the settings or a published model have brought."""
        base = [self.resolved.base.words] if self.resolved.base and self.resolved.base.words else []
        blobs = [
            self.resolved.settings.features,
            *base,
            *(standing.first.features for standing in self.resolved.judged.values()),
        ]
        said = "\n".join([*self.settings.read.pin, *self.settings.read.ban]).encode()
        lines = b"\n".join(filter(None, (said, *(codec.unpack_bag(blob)[0] for blob in blobs))))
        return dict(zip(features_of_lines(lines).tolist(), lines.decode().split("\n"), strict=True)) if lines else {}

    def distinct_judgements(self) -> list[StandingJudgement]:
        """The judgements that stand, those of near-duplicates once."""
        every = list(self.resolved.judged.values())
        if self.resolved.base is None:
            return list(compress(every, self._trainer.unique.tolist()))
        group = self._groups().group
        return [standing for n, standing in enumerate(every) if group[n] == n]

    def published_by(self, job: str) -> int:
        """The version with which a job made a model of its own the base; 0 if it has not."""
        published = (event.seq for event in self.events if event.kind == "published" and event.job == job)
        return max(published, default=0)

    def judged_since(self, version: int) -> int:
        """How many judgements and withdrawals came after that version; how many events, if some have been forgotten."""
        if version < self.head.floor:
            return self.resolved.version - version
        return sum(event.kind in ("judged", "withdrawn") for event in self.events if event.seq > version)

    def recipe_of(self, documents: Collection[str]) -> Recipe | None:
        """How the base was fitted, if one of these documents had a part in it with another label than stands now."""
        if self.resolved.base is None:
            return None
        base, resolved = Base.from_bytes(self.resolved.base.model), self.resolved
        return base.recipe if any(one in base.fitted and resolved.is_stale_for(one) for one in documents) else None

    def snapshot(self) -> tuple[Resolved, dict[str, float]]:
        """A copy of what stands, to be folded otherwise; and the scores of judged documents, held out."""
        return replace(self.resolved, judged=dict(self.resolved.judged)), self._trainer.held_out()

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """Of the judged documents, by which near-duplicates are known."""
        return self._trainer.signatures if self.resolved.base is None else self._groups().signatures

    def _groups(self) -> Groups:
        """Of all judged documents; over a base, the trainer has only those that it has learned since or recalled."""
        if self._grouped is None:
            self._grouped = Groups()
            for standing in self.resolved.judged.values():
                self._grouped.add(to_bag(standing.first.features).features)
        return self._grouped

    @property
    def nbytes(self) -> int:
        return self._trainer.nbytes + self._bytes

    def _start(self) -> Trainer:
        return train(self.resolved, self._weights)


def record(event: Event, learner: str, metrics: Mapping[str, float | None] | None, digest: str | None) -> str:
    """What the list of versions says of the model that an event made."""
    cause = event.cause or CAUSES[event.kind]
    said = {"created_ms": event.at_ms, "cause": cause, "learner": learner, "metrics": metrics, "digest": digest}
    return json.dumps(said)


def spec_of(resolved: Resolved) -> Spec:
    settings = TopicSettings.model_validate(json.loads(resolved.settings.settings))
    query = to_bag(resolved.settings.features)
    goal = Targets(**settings.goal.model_dump())
    learner = settings.learner
    return Spec(learner.kind, learner.params, query if len(query.features) else None, goal, settings.pinned_terms)


def trainer_of(resolved: Resolved, weights: int) -> Trainer:
    spec = spec_of(resolved)
    if resolved.base is None:
        return Trainer(spec, weights=weights)
    base = Base.from_bytes(resolved.base.model)
    trainer = Trainer(spec, base=base.model, fitted=base.fitted, weights=weights)
    for standing in resolved.to_recall():
        if standing.first.document in base.fitted:
            trainer.recall(example(standing))
    return trainer


def train(resolved: Resolved, weights: int) -> Trainer:
    """The fold over all that stands."""
    trainer = trainer_of(resolved, weights)
    for standing in resolved.to_fold():
        trainer.learn(example(standing))
    return trainer


def to_bag(blob: bytes) -> Bag:
    """The bag that was logged, its features hashed anew from their words."""
    words, counts, idf = codec.unpack_bag(blob)
    features = features_of_lines(words)
    order = np.argsort(features)
    return Bag(features[order], counts[order], idf[order])


def example(standing: StandingJudgement) -> Example:
    first = standing.first
    how = standing.origin, first.chance, standing.delivered == "accept", first.came_ms, first.after
    return Example(first.document, standing.relevant, to_bag(first.features), *how)


def _size(event: Event) -> int:
    return len(event.features) + len(event.words) + len(event.model) + 500
