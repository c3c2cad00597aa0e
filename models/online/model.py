"""The values that training takes and gives: a topic's spec and its examples in, a model out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from models.core.names import Origin
from models.core.vectors import Bag, Linear
from models.goals.evidence import Evidence
from models.goals.promises import Targets
from models.goals.sigmoid import Calibration
from models.online.committee import Committee
from models.online.pins import NONE, PinnedTerms
from models.online.pocket import PocketParams


@dataclass(frozen=True, slots=True)
class Spec:
    """All that determines a topic's model, apart from the examples."""

    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    query: Bag | None = None
    goal: Targets = field(default_factory=Targets)
    terms: PinnedTerms = NONE
    pocket: PocketParams = field(default_factory=PocketParams)


@dataclass(frozen=True, slots=True)
class Example:
    """A judged document, and how it came to be judged."""

    document: str
    relevant: bool
    bag: Bag
    origin: Origin = "given"
    chance: float = 0.0  # the probability with which it was drawn for audit, if it was
    accepted: bool = False  # whether it had been accepted when it was judged
    arrived: int = 0  # when the document arrived, in any unit; 0 if unknown
    accepted_before: int = 0  # how many documents had been accepted when it was judged; 0 if unknown


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """The counts and estimates behind a model; an estimate is None while there is nothing to estimate from."""

    relevant: int = 0
    irrelevant: int = 0
    sap: float | None = None  # of the vector that won the last check, on the scores that it won by
    f1: float | None = None  # at the threshold, on scores without each document's own influence


@dataclass(frozen=True, slots=True)
class Model:
    linear: Linear
    reject_below: float
    accept_above: float
    figures: ModelFigures = ModelFigures()
    evidence: Evidence = field(default_factory=Evidence)
    calibration: Calibration | None = None  # None before there is evidence
    committee: Committee | None = None  # if its members vote, they decide, and `linear` is the mean of their scores
