"""A model as it is published: what decides, its topic and settings, and the figures behind it, in one immutable value.

`PublishedModel.to_bytes` is a function of the log alone (no clock, no process), so that the digest of a replayed model
can be compared with the digest of the stored one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Bag, Linear, Sparse
from models.core.views import view
from models.goals.evidence import Evidence
from models.goals.sigmoid import Calibration
from models.online import committee as voting
from models.online.committee import Committee, VotingRule
from models.online.committee_estimates import CommitteeRates
from models.online.model import Model, ModelFigures
from models.text.projection import Projection
from service.schemas import Decision
from service.store import codec
from service.topics.projections import NumberedProjection
from service.topics.settings import TopicSettings

DIGITS = 6  # of a score in a response
_DECISIONS: Mapping[int, Decision] = {1: "accept", 0: "abstain", -1: "reject"}


class Recipe(NamedTuple):
    """How a model was fitted to all judgements at once."""

    method: str
    params: Mapping[str, object]
    topics: Sequence[str] = ()  # those it was fitted together with, itself included; none if it was fitted alone


@dataclass(frozen=True, slots=True, eq=False)
class PublishedModel:
    topic: str
    born: str  # identifies this topic among earlier ones of the same name; not part of the bytes
    version: int
    epoch: int  # the background its thresholds were chosen against
    settings: TopicSettings
    model: Model
    relevant: int  # judgements in force
    irrelevant: int
    projected: int = 0  # the number of the projection that documents are seen under, if the model goes by meaning
    projection: Projection | None = None  # the same, once it is loaded

    def under(self, numbered: NumberedProjection | None) -> "PublishedModel":
        """The same model, with the projection that was in force when it was made, if it uses that."""
        if numbered is None or self.model.linear.view != "semantic":
            return replace(self, projected=0, projection=None)
        return replace(self, projected=numbered.number, projection=numbered.projection)

    def seen(self, bag: Bag) -> Sparse:
        """A document as the model sees it: its words, and under a projection its latent features."""
        return view(self.model.linear.view, self.projection.extend(bag) if self.projection else bag)

    @property
    def certain(self) -> bool | None:
        """Whether the precision or error that its goal asks of what is accepted can be promised; None if it asks for
        neither."""
        goal = self.settings.goal
        return None if goal.min_precision is None and goal.max_error is None else self.model.evidence.certified

    def decide(self, score: float) -> Decision:
        """The decision that follows from a score; for a committee that votes, pass its `decision_score`."""
        return decide(score, self.model.reject_below, self.model.accept_above)

    def decision_score(self, bag: Bag) -> float:
        """A single score that, compared with the thresholds, gives the decision, even where a committee votes."""
        model = self.model
        x, committee = self.seen(bag), model.committee
        if not committee or not committee.rule:
            return model.linear.score(x)
        points = voting.turning_points(np.array([[member.score(x) for member in committee.members]]), committee.rule)
        return float(points.decision_score(model.reject_below, model.accept_above)[0])

    def decide_bag(self, bag: Bag) -> tuple[Decision, float]:
        """The decision about a document, and its score."""
        model = self.model
        x = self.seen(bag)
        score, committee = model.linear.score(x), model.committee
        if committee and committee.rule:
            members = [member.score(x) for member in committee.members]
            return decide_together(members, model.reject_below, model.accept_above, committee.rule), score
        return decide(score, model.reject_below, model.accept_above), score

    def to_bytes(self) -> bytes:
        meta: dict[str, object] = {
            "topic": self.topic,
            "version": self.version,
            "epoch": self.epoch,
            "settings": self.settings.model_dump(mode="json"),
            "judged": [self.relevant, self.irrelevant],
        }
        if self.projected:
            meta["projection"] = self.projected
        return _pack(self.model, meta)

    @classmethod
    def from_bytes(cls, blob: bytes, born: str) -> "PublishedModel":
        """The model, without its projection: `topics/sync.py` loads that."""
        with _readable():
            meta, _ = codec.unpack(codec.MODEL, blob)
            settings = TopicSettings.model_validate(meta["settings"])
            model = _model(blob)
            relevant, irrelevant = meta["judged"]
            topic, version, epoch, projected = meta["topic"], meta["version"], meta["epoch"], meta.get("projection", 0)
            return cls(topic, born, version, epoch, settings, model, relevant, irrelevant, projected)


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """A model that learning continues from, as the log keeps it."""

    model: Model
    # The documents that it was fitted on, judged or not, each with its score by a model that was fitted without it.
    fitted: Mapping[str, float] = field(default_factory=dict)
    recipe: Recipe | None = None  # None if it was imported

    def to_bytes(self) -> bytes:
        recipe = self.recipe and {"method": self.recipe.method, "params": dict(self.recipe.params)}
        if self.recipe and recipe and self.recipe.topics:
            recipe["topics"] = list(self.recipe.topics)
        return _pack(
            self.model,
            {"fitted": list(self.fitted), "recipe": recipe},
            {"fitted scores": np.fromiter(self.fitted.values(), float)},
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Base":
        with _readable():
            meta, arrays = codec.unpack(codec.MODEL, blob)
            fitted = dict(zip(meta["fitted"], arrays["fitted scores"].tolist(), strict=True))
            return cls(_model(blob), fitted, Recipe(**meta["recipe"]) if meta["recipe"] else None)


def decide(score: float, reject_below: float, accept_above: float) -> Decision:
    if score < reject_below:
        return "reject"
    return "accept" if score > accept_above else "abstain"


def decide_together(scores: Sequence[float], reject_below: float, accept_above: float, rule: VotingRule) -> Decision:
    """The decision of a committee, from the scores of its members."""
    return _DECISIONS[voting.decide(scores, reject_below, accept_above, rule)]


@contextmanager
def _readable() -> Iterator[None]:
    """Raises `Corrupt` for content that another version of Sluice has written and this one does not know."""
    try:
        yield
    except codec.Corrupt:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise codec.Corrupt("it was not written by this version of Sluice") from error


def _model(blob: bytes) -> Model:
    meta, arrays = codec.unpack(codec.MODEL, blob)
    linear = Linear(meta["view"], arrays["features"], arrays["weights"], meta["bias"], meta["rest"])
    figures, evidence = ModelFigures(**meta["figures"]), Evidence(**meta["evidence"])
    calibration = Calibration(*meta["calibration"]) if meta.get("calibration") else None
    committee = _committee(meta, arrays) if meta.get("committee") else None
    return Model(linear, meta["reject_below"], meta["accept_above"], figures, evidence, calibration, committee)


def _committee(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Committee:
    stored = meta["committee"]
    members = tuple(
        Linear(meta["view"], arrays[f"features {i}"], arrays[f"weights {i}"], bias, rest)
        for i, (bias, rest) in enumerate(stored["members"])
    )
    rule = _rule(*stored["rule"]) if stored["rule"] else None
    estimates = {name: CommitteeRates(*figures) for name, figures in stored["estimates"].items()}
    return Committee(stored["k"], members, rule, estimates)


def _rule(weights: Sequence[float], t1: float, t2: float | None = None) -> VotingRule:
    return VotingRule(tuple(weights), t1, -t1 if t2 is None else t2)


def _stored_rule(rule: VotingRule) -> tuple[Sequence[float], *tuple[float, ...]]:
    """The rule without t₂ where that is −t₁, as all were stored once."""
    return (rule.weights, rule.t1) if rule.t2 == -rule.t1 else rule


def _evidence(evidence: Evidence) -> dict[str, Any]:
    """The evidence as it is stored. Fields that came later are left out where they say nothing, so that models that do
    without them keep their digests."""
    fields = asdict(evidence)
    return fields if evidence.value is not None else {k: v for k, v in fields.items() if k != "value"}


def _pack(model: Model, meta: dict[str, object], extra: Mapping[str, NDArray[Any]] = MappingProxyType({})) -> bytes:
    linear, committee = model.linear, model.committee
    arrays: dict[str, NDArray[Any]] = {"features": linear.features, "weights": linear.weights, **extra}
    meta |= {
        "view": linear.view,
        "bias": linear.bias,
        "rest": linear.rest,
        "reject_below": model.reject_below,
        "accept_above": model.accept_above,
        "figures": asdict(model.figures),
        "evidence": _evidence(model.evidence),
        "calibration": model.calibration,
    }
    if committee:
        meta["committee"] = {
            "k": committee.k,
            "members": [[member.bias, member.rest] for member in committee.members],
            "rule": committee.rule and _stored_rule(committee.rule),
            "estimates": committee.estimates,
        }
        for i, member in enumerate(committee.members):
            arrays |= {f"features {i}": member.features, f"weights {i}": member.weights}
    return codec.pack(codec.MODEL, meta, arrays)
