"""A model as it is published: what decides, whose it is, and the figures behind it, in one immutable value.

`Served.to_bytes` is a function of the log alone (no clock, no process), so that the digest of a replayed model can be
compared with the digest of the stored one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Bag, Linear
from models.core.views import view
from models.goals.calibration import Calibration
from models.goals.evidence import Evidence
from models.online import committee
from models.online.committee import Committee, VotingRule
from models.online.committee_estimates import LossAndError
from models.online.model import Model, ModelFigures
from service.schemas import Decision
from service.store import codec
from service.topics.settings import TopicSettings

DIGITS = 6  # of a score in an answer
MEANS: Mapping[int, Decision] = {1: "accept", 0: "abstain", -1: "reject"}


class Recipe(NamedTuple):
    """How a model was fitted to all judgements at once."""

    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedModel:
    topic: str
    born: str  # which incarnation of the topic; not part of the bytes
    version: int
    epoch: int  # the background its thresholds were chosen against
    settings: TopicSettings
    model: Model
    relevant: int  # judgements in force
    irrelevant: int

    def decide(self, score: float) -> Decision:
        """What follows from a score; of a committee that votes, from what `stand` says."""
        return decide(score, self.model.reject_below, self.model.accept_above)

    def decision_score(self, bag: Bag) -> float:
        """A score that lies to the thresholds as the decision does."""
        model = self.model
        x, together = view(model.linear.view, bag), model.committee
        if not together or not together.rule:
            return model.linear.score(x)
        told = committee.turning_points(np.array([[member.score(x) for member in together.members]]), together.rule)
        return float(told.decision_score(model.reject_below, model.accept_above)[0])

    def decide_bag(self, bag: Bag) -> tuple[Decision, float]:
        """What is decided about a document, and its score."""
        model = self.model
        x = view(model.linear.view, bag)
        score, together = model.linear.score(x), model.committee
        if together and together.rule:
            members = [member.score(x) for member in together.members]
            return decide_together(members, model.reject_below, model.accept_above, together.rule), score
        return decide(score, model.reject_below, model.accept_above), score

    def to_bytes(self) -> bytes:
        meta = {
            "topic": self.topic,
            "version": self.version,
            "epoch": self.epoch,
            "settings": self.settings.model_dump(mode="json"),
            "judged": [self.relevant, self.irrelevant],
        }
        return _pack(self.model, meta)

    @classmethod
    def from_bytes(cls, blob: bytes, born: str) -> "PublishedModel":
        with _readable():
            meta, _ = codec.unpack(codec.MODEL, blob)
            settings = TopicSettings.model_validate(meta["settings"])
            model = _model(blob)
            return cls(meta["topic"], born, meta["version"], meta["epoch"], settings, model, *meta["judged"])


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """A model that learning goes on from, as the log keeps it."""

    model: Model
    # Documents that it was fitted on, judged or not, each with its score by a model that was fitted without it.
    fitted: Mapping[str, float] = field(default_factory=dict)
    recipe: Recipe | None = None  # None if it came from elsewhere

    def to_bytes(self) -> bytes:
        recipe = self.recipe and {"method": self.recipe.method, "params": dict(self.recipe.params)}
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


def decide_together(scores: Sequence[float], reject_below: float, accept_above: float, voting: VotingRule) -> Decision:
    return MEANS[committee.decide(scores, reject_below, accept_above, voting)]


@contextmanager
def _readable() -> Iterator[None]:
    """What another version of Sluice has put there, and this one does not know, is as unreadable as missing bytes."""
    try:
        yield
    except codec.Corrupt:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise codec.Corrupt("it holds something else than this version of Sluice writes") from error


def _model(blob: bytes) -> Model:
    meta, arrays = codec.unpack(codec.MODEL, blob)
    linear = Linear(meta["view"], arrays["features"], arrays["weights"], meta["bias"], meta["rest"])
    figures, evidence = ModelFigures(**meta["figures"]), Evidence(**meta["evidence"])
    calibration = Calibration(*meta["calibration"]) if meta.get("calibration") else None
    together = _committee(meta, arrays) if meta.get("committee") else None
    return Model(linear, meta["reject_below"], meta["accept_above"], figures, evidence, calibration, together)


def _committee(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Committee:
    said = meta["committee"]
    members = tuple(
        Linear(meta["view"], arrays[f"features {i}"], arrays[f"weights {i}"], bias, rest)
        for i, (bias, rest) in enumerate(said["members"])
    )
    rule = VotingRule(tuple(said["rule"][0]), said["rule"][1]) if said["rule"] else None
    return Committee(said["k"], members, rule, {name: LossAndError(*one) for name, one in said["estimates"].items()})


def _pack(model: Model, meta: dict[str, object], also: Mapping[str, NDArray[Any]] = MappingProxyType({})) -> bytes:
    linear, together = model.linear, model.committee
    arrays: dict[str, NDArray[Any]] = {"features": linear.features, "weights": linear.weights, **also}
    meta |= {
        "view": linear.view,
        "bias": linear.bias,
        "rest": linear.rest,
        "reject_below": model.reject_below,
        "accept_above": model.accept_above,
        "figures": asdict(model.figures),
        "evidence": asdict(model.evidence),
        "calibration": model.calibration,
    }
    if together:
        meta["committee"] = {
            "k": together.k,
            "members": [[member.bias, member.rest] for member in together.members],
            "rule": together.rule,
            "estimates": together.estimates,
        }
        for i, member in enumerate(together.members):
            arrays |= {f"features {i}": member.features, f"weights {i}": member.weights}
    return codec.pack(codec.MODEL, meta, arrays)
