"""Tables for people (Markdown), and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from models.core.intervals import Interval
from models.core.measures import macro
from models.goals.promises import Targets
from scripts.common.report import decimals, print_table
from scripts.common.report import write_json as write
from scripts.simulation.attainment import NEARLY, Attainment, FollowUp


def summary(
    title: str, goal: Targets, every: Sequence[Attainment], pooled: Interval | None = None, covers: bool = True
) -> None:
    met = [one for one in every if one.met]
    rows = [["judgements a topic", f"{macro([one.said.judged for one in every]):.0f}"]]
    rows += [["of these audits", f"{macro([one.said.audited for one in every]):.0f}"]]
    if goal.min_precision is not None:
        rows += [["precision said to be met", _of(len(met), len(every))]]
        rows += [["… after judgements, median", f"{_median([one.said.met_at or 0 for one in met]):.0f}"]]
    rows += _after("on what follows, as it stood", goal, [(one, one.frozen) for one in every])
    rows += _after("on what follows, judging on", goal, [(one, one.going_on) for one in every if one.going_on])
    if goal.max_abstain is not None:
        kept = sum(one.lately <= goal.max_abstain for one in every)
        rows += [[f"at the end of the stream: abstained ≤ {goal.max_abstain:g}", _of(kept, len(every))]]
    rows += [
        ["recall interval (audits) covers", _of(sum(one.recall_covers for one in every), len(every))],
        ["… lower bound, mean", decimals(macro([one.said.recall.low for one in every if one.said.recall]))],
        ["recall interval (known items) covers, chance", decimals(macro([one.known_covers for one in every]))],
        ["… lower bound, mean", decimals(macro([one.known_low for one in every]))],
    ]
    if pooled:
        rows += [["recall interval, all topics together", f"{decimals(pooled.low)} to {decimals(pooled.high)}"]]
        rows += [["… covers", "yes" if covers else "no"]]
    print_table(["", ""], rows, title)


def _after(when: str, goal: Targets, every: Sequence[tuple[Attainment, FollowUp]]) -> list[list[str]]:
    if not every:
        return []
    rows: list[list[str]] = []
    if (aim := goal.min_precision) is not None:
        met = [after for one, after in every if one.met]
        rows += [
            [f"{when}: precision ≥ {aim - NEARLY:g}", _of(sum(after.holds(aim) for after in met), len(met))],
            ["… significantly below the goal", str(sum(after.broken(aim) for after in met))],
            ["… mean", decimals(macro([after.precision for after in met if after.precision is not None]))],
            ["… relevant documents accepted, mean of all topics", decimals(macro([after.found for _, after in every]))],
        ]
    rows += [[f"{when}: relevant documents not rejected, mean", decimals(macro([after.kept for _, after in every]))]]
    if (most := goal.max_abstain) is not None:
        kept = sum(after.abstained <= most for _, after in every)
        rows += [[f"{when}: abstained ≤ {most:g}", _of(kept, len(every))]]
        rows += [["… mean", decimals(macro([after.abstained for _, after in every]))]]
    return rows


def topics(every: Sequence[Attainment]) -> None:
    rows = [
        [
            one.topic,
            str(one.said.judged),
            one.said.precision or "",
            *_row(one.frozen),
            *(_row(one.going_on) if one.going_on else ()),
            one.said.state,
        ]
        for one in every
    ]
    after = ["accepted", "precision", "found", "kept", "abstained"]
    going_on = [f"{name}, judging on" for name in after] if any(one.going_on for one in every) else []
    print_table(["topic", "judged", "said", *after, *going_on, "state"], rows, "Each topic")


def _row(after: FollowUp) -> list[str]:
    precision = "" if after.precision is None else decimals(after.precision)
    return [str(after.accepted), precision, decimals(after.found), decimals(after.kept), decimals(after.abstained)]


def write_json(path: Path, setting: dict[str, object], every: Sequence[Attainment]) -> None:
    write(path, {**setting, "topics": [asdict(one) for one in every]})


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({decimals(part / whole)})" if whole else "")


def _median(numbers: Sequence[float]) -> float:
    ranked = sorted(numbers)
    return ranked[len(ranked) // 2] if ranked else 0.0
