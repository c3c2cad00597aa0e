"""Every learner by name, and the reading of its parameters from JSON."""

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Any, Literal, Protocol, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.names import LEARNER_KINDS
from models.core.vectors import Reals
from models.learners import eg, passive_aggressive, perceptron, rocchio, widrow_hoff, winnow
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.online import committee

Params = widrow_hoff.Params | eg.Params | winnow.Params | perceptron.Params | rocchio.Params | passive_aggressive.Params


class LearnerModule(Protocol):
    """The shape of a learner's module (see learners/base.py); p and s are its own `Params` and `State`."""

    Params: type[Any]

    def start(self, p: Any, query: DocumentVector | None) -> Any: ...
    def resume(self, p: Any, v: Vector) -> Any: ...
    def update(self, p: Any, s: Any, x: DocumentVector, y: bool) -> float: ...
    def vectors(self, p: Any, s: Any) -> tuple[Vector, ...]: ...
    def held_out(self, p: Any, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals: ...


LEARNERS: Mapping[str, LearnerModule] = {
    "wh": widrow_hoff,
    "eg": eg,
    "winnow": winnow,
    "perceptron": perceptron,
    "rocchio": rocchio,
    "pa": passive_aggressive,
}

# Under `auto` these all learn, with their defaults, and the pocket chooses among them; until it has, the first serves.
AUTO = ("wh", "eg", "winnow", "perceptron")


def parse_params(kind: str, params: Mapping[str, object]) -> Params:
    """The parameters of a learner (of `auto`: of its first, of a committee: of its members), or a ValueError whose
    sentence says what is wrong."""
    check(kind in LEARNER_KINDS, f"learner must be one of {', '.join(LEARNER_KINDS)}")
    if kind == "auto":
        check(not params, "auto has no parameters: its learners have their defaults")
        kind = AUTO[0]
    if kind == "committee":
        together = parse_committee(params)
        return parse_params(together.of, together.params)
    return cast(Params, read_params(kind, LEARNERS[kind].Params, params, _variant(kind, params)))


def parse_committee(params: Mapping[str, object]) -> committee.Params:
    """The parameters of a committee as a whole; those of its members are not looked at."""
    return cast(committee.Params, read_params("committee", committee.Params, params))


def read_params(
    kind: str, Kind: type[Any], params: Mapping[str, object], defaults: Mapping[str, object] = MappingProxyType({})
) -> Any:
    """A dataclass of parameters from JSON, each checked against its type and then by the dataclass itself."""
    known = get_type_hints(Kind)
    names = [f.name for f in dataclasses.fields(Kind)]
    for name, value in params.items():
        check(name in names, f"{kind} has no parameter {name[:40]!r}; it has {', '.join(names)}")
        check(_fits(value, known[name]), f"{name} must be {_says(known[name])}")
    return Kind(**{**defaults, **params})


def _variant(kind: str, params: Mapping[str, object]) -> Mapping[str, object]:
    """A variant is a name for a set of parameters; each of them can still be given another value."""
    return winnow.VARIANTS.get(str(params.get("variant")), {}) if kind == "winnow" else {}


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    if isinstance(hint, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is float:  # JSON writes 1.0 as 1, at any length, and Python counts True as 1
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _says(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if get_origin(hint) is Mapping:
        return "an object"
    if isinstance(hint, UnionType):
        return " or ".join(_says(one) for one in get_args(hint))
    return {float: "a finite number", int: "a whole number", bool: "true or false"}.get(hint, "null")
