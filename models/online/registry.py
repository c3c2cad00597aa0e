"""Every learner by its name, and how its parameters are read from JSON.

A new learner is a module of models/learners, one entry in LEARNERS, and its name in core/names.py.
"""

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Any, Literal, Protocol, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.names import LEARNER_KINDS, View
from models.core.vectors import Reals
from models.learners import eg, passive_aggressive, perceptron, rocchio, widrow_hoff, winnow
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.methods.registry import METHODS
from models.online import committee


class Params(Protocol):
    """What all learners' parameters have: the view through which the learner sees documents."""

    @property
    def view(self) -> View: ...


class LearnerModule(Protocol):
    """The contract of a learner's module (see learners/base.py); p and s are its own `Params` and `State`."""

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

# Under `auto` all of these learn, with their defaults, and the pocket chooses among them; until then the first serves.
AUTO = ("wh", "eg", "winnow", "perceptron")


def parse_params(kind: str, params: Mapping[str, object]) -> Params:
    """The parameters of a learner; of `auto` those of its first learner, of a committee those of its members. Raises a
    ValueError with a sentence that says what is wrong."""
    check(kind in LEARNER_KINDS, f"the learner must be one of {', '.join(LEARNER_KINDS)}")
    if kind == "auto":
        check(not params, "the learner auto has no parameters: its learners use their defaults")
        kind = AUTO[0]
    if kind == "committee":
        whole = parse_committee(params)
        if whole.of in METHODS:
            return cast(Params, read_params(whole.of, METHODS[whole.of].Params, whole.params))
        return parse_params(whole.of, whole.params)
    return cast(Params, read_params(kind, LEARNERS[kind].Params, params, _variant(kind, params)))


def takes_signed_values(p: Params) -> bool:
    """Whether a learner with these parameters can learn from values below 0. Its updates must be additive, all weights
    must start at 0, and none may be dropped for being negative."""
    match p:
        case widrow_hoff.Params() | passive_aggressive.Params():
            return True
        case perceptron.Params():
            return p.d is None
        case rocchio.Params():
            return not p.positive
    return False


def parse_committee(params: Mapping[str, object]) -> committee.Params:
    """The parameters of a committee as a whole; those of its members are not checked."""
    return cast(committee.Params, read_params("committee", committee.Params, params))


def read_params(
    kind: str, Kind: type[Any], params: Mapping[str, object], defaults: Mapping[str, object] = MappingProxyType({})
) -> Any:
    """A dataclass of parameters from JSON, each checked against its type and then by the dataclass itself."""
    types = get_type_hints(Kind)
    names = [f.name for f in dataclasses.fields(Kind)]
    for name, value in params.items():
        check(name in names, f"there is no parameter {name[:40]!r}; {kind} has {', '.join(names)}")
        check(_fits(value, types[name]), f"the parameter {name} must be {_described(types[name])}")
    try:
        return Kind(**{**defaults, **params})
    except ValueError as error:  # its message begins with the parameter's name
        raise ValueError(f"the parameter {error}") from None


def _variant(kind: str, params: Mapping[str, object]) -> Mapping[str, object]:
    """The defaults of a variant, which is a name for a set of parameters; each can still be given another value."""
    return winnow.VARIANTS.get(str(params.get("variant")), {}) if kind == "winnow" else {}


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    if isinstance(hint, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if hint is float:  # JSON may write 1.0 as 1, a whole number of any length, and Python takes True for 1
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _described(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if get_origin(hint) is Mapping:
        return "an object"
    if isinstance(hint, UnionType):
        return " or ".join(_described(option) for option in get_args(hint))
    return {float: "a finite number", int: "a whole number", bool: "true or false"}.get(hint, "null")
