"""A model as it is published: what decides, whose it is, and the figures behind it, in one immutable value.

`Served.to_bytes` is a function of the log alone (no clock, no process), so that the digest of a replayed model can be
compared with the digest of the stored one.
"""

from dataclasses import asdict, dataclass

from pydantic import Field

from models.fold import Figures, Model
from models.vectors import Linear
from service import codec
from service.schemas import Decision, TopicFields


class Settings(TopicFields):
    """A topic as its user wants it."""

    created_ms: int = Field(ge=0)


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    topic: str
    born: str  # which incarnation of the topic; not part of the bytes
    version: int
    epoch: int  # the background its thresholds were chosen against
    settings: Settings
    model: Model
    relevant: int  # judgements in force
    irrelevant: int

    def decide(self, score: float) -> Decision:
        return decide(score, self.model.reject_below, self.model.accept_above)

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
    def from_bytes(cls, blob: bytes, born: str) -> "Served":
        meta, _ = codec.unpack(codec.MODEL, blob)
        settings = Settings.model_validate(meta["settings"])
        return cls(
            meta["topic"], born, meta["version"], meta["epoch"], settings, model_from_bytes(blob), *meta["judged"]
        )


def decide(score: float, reject_below: float, accept_above: float) -> Decision:
    if score < reject_below:
        return "reject"
    return "accept" if score > accept_above else "abstain"


def model_to_bytes(model: Model) -> bytes:
    return _pack(model, {})


def model_from_bytes(blob: bytes) -> Model:
    meta, arrays = codec.unpack(codec.MODEL, blob)
    linear = Linear(meta["view"], arrays["features"], arrays["weights"], meta["bias"], meta["rest"])
    return Model(linear, meta["reject_below"], meta["accept_above"], Figures(**meta["figures"]))


def _pack(model: Model, meta: dict[str, object]) -> bytes:
    linear = model.linear
    meta |= {
        "view": linear.view,
        "bias": linear.bias,
        "rest": linear.rest,
        "reject_below": model.reject_below,
        "accept_above": model.accept_above,
        "figures": asdict(model.figures),
    }
    return codec.pack(codec.MODEL, meta, {"features": linear.features, "weights": linear.weights})
