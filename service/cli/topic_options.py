"""The settings of a topic as options of `sluice topics create` and `sluice topics change`, declared once for both."""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, NamedTuple

import typer

from service.cli.terminal import Misused, Params, parse_params


class TopicOptions(NamedTuple):
    query: Annotated[str | None, typer.Option(help="What the topic is about, in a few words.")] = None
    name: Annotated[str | None, typer.Option(help="A name for people to read.")] = None
    learner: Annotated[str | None, typer.Option(help="How it learns, such as wh, eg, winnow or auto.")] = None
    param: Params = None
    goal: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE", help="A goal, such as min_precision=.9, or mode=strict; repeatable."),
    ] = None
    maximise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE",
            help="Cut where this is highest: f_beta=2, break_even, or a utility: hit=2, false_alarm=1, miss=0, "
            "each with an option of its own.",
        ),
    ] = None
    cuts: Annotated[
        str | None,
        typer.Option(
            metavar="REJECT,ACCEPT",
            help="Thresholds that stay, such as .1,.3; a single number is a band to either side of the topic's own; "
            "'' removes them.",
        ),
    ] = None
    accept_if: Annotated[str | None, typer.Option(help="Accept what matches this rule, whatever the model says.")] = (
        None
    )
    reject_if: Annotated[str | None, typer.Option(help="Reject what matches this rule, whatever the model says.")] = (
        None
    )
    group: Annotated[
        str | None, typer.Option(help="A group of topics of which one may accept a document; '' leaves it.")
    ] = None
    group_rule: Annotated[str | None, typer.Option(help="Of the group: at_most_one or exactly_one.")] = None
    group_margin: Annotated[
        float | None, typer.Option(help="Of the group: two topics whose probabilities are this near abstain.")
    ] = None
    pin: Annotated[
        list[str] | None, typer.Option(metavar="TERM", help="A term in favour of the topic; repeatable.")
    ] = None
    ban: Annotated[list[str] | None, typer.Option(metavar="TERM", help="A term to ignore; repeatable.")] = None
    semantic: Annotated[
        bool | None, typer.Option("--semantic/--words-only", help="Go by meaning, too, or by its words alone.")
    ] = None
    ranking: Annotated[
        str | None, typer.Option(help="How `ranked` is ordered: pairwise learns from feedback; '' is by score.")
    ] = None
    pocket: Annotated[
        str | None,
        typer.Option(
            metavar="N|off", help="Judgements between two choices of the vector that is served; off: always the newest."
        ),
    ] = None
    audit: Annotated[float | None, typer.Option(help="Share of rejected documents to draw for audit.")] = None

    def settings(self) -> dict[str, Any]:
        """The settings that were given, as the API takes them; of rules and terms, only the parts that were given."""
        if self.param and not self.learner:
            raise Misused("--param is a parameter of the learner: give --learner, too.")
        if self.audit is not None and not math.isfinite(self.audit):
            raise Misused("A share for --audit is a number such as .01.")
        group = {"name": self.group, "rule": self.group_rule, "margin": self.group_margin}
        if not self.group and (self.group_rule is not None or self.group_margin is not None):
            raise Misused("Give --group, too: --group-rule and --group-margin are about it.")
        if self.group_margin is not None and not math.isfinite(self.group_margin):
            raise Misused("A share for --group-margin is a number such as .1.")
        rules = {"accept_if": self.accept_if, "reject_if": self.reject_if}
        terms = {"pin": self.pin, "ban": self.ban}
        settings: dict[str, Any] = {
            "query": self.query,
            "name": self.name,
            "learner": {"kind": self.learner, "params": parse_params(self.param)} if self.learner else None,
            "goal": self._goal(),
            "cuts": _parse_cuts(self.cuts) if self.cuts else None,
            "rules": {name: rule for name, rule in rules.items() if rule is not None} or None,
            "group": {name: value for name, value in group.items() if value is not None} if self.group else None,
            "terms": {name: list(filter(None, given)) for name, given in terms.items() if given} or None,
            "ranking": {"kind": self.ranking} if self.ranking else None,
            "semantic": self.semantic,
            "pocket": None if self.pocket is None else {"every": _parse_every(self.pocket)},
            "audit": self.audit,
        }
        given = (("group", self.group), ("ranking", self.ranking), ("cuts", self.cuts))
        left = {name: None for name, value in given if value == ""}
        return {name: value for name, value in settings.items() if value is not None} | left

    def _goal(self) -> dict[str, Any] | None:
        """The goal, if one was given; {} to remove it."""
        if not self.goal and not self.maximise:
            return None
        goal: dict[str, Any] = dict(map(_parse_goal, filter(None, self.goal or ())))
        measures = list(filter(None, self.maximise or ()))
        return goal | {"maximise": _parse_measure(measures)} if measures else goal


def with_topic_options(command: Callable[..., None]) -> Callable[..., None]:
    """Puts the options of `TopicOptions` in place of a command's argument `options`: typer reads the signature."""
    declared = inspect.signature(TopicOptions).parameters

    @wraps(command)
    def called(**arguments: Any) -> None:
        options = TopicOptions(**{name: arguments.pop(name) for name in declared})
        command(options=options, **arguments)

    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameters += declared.values() if name == "options" else [parameter]
    vars(called)["__signature__"] = inspect.Signature(parameters)
    return called


def _parse_cuts(text: str) -> dict[str, float]:
    """Thresholds set by hand, as the API takes them."""
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or not all(map(math.isfinite, numbers)):
        raise Misused(f"Thresholds have the form .1,.3, and a band is a number such as .2, not {text!r}.")
    return {"band": numbers[0]} if len(numbers) == 1 else {"reject_below": numbers[0], "accept_above": numbers[1]}


def _parse_measure(texts: Sequence[str]) -> str | dict[str, Any]:
    """What to maximise, as the API takes it."""
    if texts == ["break_even"]:
        return "break_even"
    numbers = {name: _number(number, text) for text in texts for name, _, number in [text.partition("=")]}
    if numbers.keys() == {"f_beta"}:
        return numbers
    if not numbers.keys() <= {"hit", "false_alarm", "miss"}:
        raise Misused("Maximise f_beta=2, break_even, or a utility of hit=2, false_alarm=1 and miss=0.")
    return {"utility": numbers}


def _number(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Misused(f"What to maximise has the form f_beta=2, break_even or hit=2, not {text!r}.")
    return value


def _parse_every(text: str) -> int | None:
    if text == "off":
        return None
    if not text.isascii() or not text.isdecimal():
        raise Misused(f"Give --pocket a number of judgements, or off, not {text!r}.")
    return int(text)


def _parse_goal(text: str) -> tuple[str, float | str]:
    name, _, share = text.partition("=")
    if name == "mode":
        return name, share
    try:
        value = float(share)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Misused(f"A goal has the form min_precision=.9, not {text!r}.")
    return name, value
