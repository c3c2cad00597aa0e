"""Tables and JSON of what was promised and what came."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from models.core.intervals import Interval
from models.core.measures import macro
from models.goals.promises import Targets
from scripts.common.report import decimals, print_table
from scripts.common.report import write_json as write
from scripts.simulation.attainment import TOLERANCE, Attainment, FollowUp


def summary(
    title: str,
    goal: Targets,
    results: Sequence[Attainment],
    pooled: Interval | None = None,
    covers: bool = True,
    ceiling: Sequence[FollowUp] = (),
) -> None:
    met = [result for result in results if result.met]
    rows = [["judgements a topic", f"{macro([r.claim.judged for r in results]):.0f}"]]
    rows += [["of these audits", f"{macro([r.claim.audited for r in results]):.0f}"]]
    if goal.min_precision is not None:
        rows += [["precision promised", _of(len(met), len(results))]]
        if after := [r.claim.met_at for r in met if r.claim.met_at is not None]:
            rows += [["… after judgements, median", f"{_median(after):.0f}"]]
    rows += _follow_up("on what follows, as it stood", goal, [(r, r.frozen) for r in results])
    rows += _follow_up("on what follows, judging on", goal, [(r, r.going_on) for r in results if r.going_on])
    if ceiling:
        found, kept_by_svm = macro([after.found for after in ceiling]), macro([after.kept for after in ceiling])
        rows += [["an SVM of all labels, cut in hindsight: relevant documents accepted", decimals(found)]]
        rows += [["… not rejected", decimals(kept_by_svm)]]
    if goal.max_abstain is not None:
        kept = sum(r.abstained_recently <= goal.max_abstain for r in results)
        rows += [[f"at the end of the stream: abstained ≤ {goal.max_abstain:g}", _of(kept, len(results))]]
    rows += [
        ["recall interval (audits) covers", _of(sum(r.recall_covers for r in results), len(results))],
        ["… lower bound, mean", decimals(macro([r.claim.recall.low for r in results if r.claim.recall]))],
        ["recall interval (known items) covers, chance", decimals(macro([r.known_covers for r in results]))],
        ["… lower bound, mean", decimals(macro([r.known_low for r in results]))],
    ]
    if pooled:
        rows += [["recall interval, all topics together", f"{decimals(pooled.low)} to {decimals(pooled.high)}"]]
        rows += [["… covers", "yes" if covers else "no"]]
    print_table(["", ""], rows, title)


def _follow_up(when: str, goal: Targets, results: Sequence[tuple[Attainment, FollowUp]]) -> list[list[str]]:
    if not results:
        return []
    rows: list[list[str]] = []
    every = [after for _, after in results]
    if (aim := goal.min_precision) is not None:
        met = [after for result, after in results if result.met]
        others = [after.precision for result, after in results if not result.met]
        unpromised = [precision for precision in others if precision is not None]
        rows += [
            [f"{when}: precision ≥ {aim - TOLERANCE:g}", _of(sum(after.holds(aim) for after in met), len(met))],
            ["… significantly below the goal", str(sum(after.broken(aim) for after in met))],
            ["… mean", decimals(macro([after.precision for after in met if after.precision is not None]))],
            ["… mean where it is not promised", decimals(macro(unpromised))],
            ["… relevant documents accepted, mean of all topics", decimals(macro([after.found for after in every]))],
        ]
    rows += [[f"{when}: relevant documents not rejected, mean", decimals(macro([after.kept for after in every]))]]
    if (limit := goal.max_abstain) is not None:
        kept = sum(after.abstained <= limit for after in every)
        rows += [[f"{when}: abstained ≤ {limit:g}", _of(kept, len(every))]]
        rows += [["… mean", decimals(macro([after.abstained for after in every]))]]
    return rows


def topics(results: Sequence[Attainment]) -> None:
    rows = [
        [
            result.topic,
            str(result.claim.judged),
            result.claim.precision or "",
            *_row(result.frozen),
            *(_row(result.going_on) if result.going_on else ()),
            result.claim.state,
        ]
        for result in results
    ]
    frozen = ["accepted", "precision", "found", "kept", "abstained"]
    going_on = [f"{name}, judging on" for name in frozen] if any(result.going_on for result in results) else []
    print_table(["topic", "judged", "claim", *frozen, *going_on, "state"], rows, "Each topic")


def write_json(path: Path, setting: dict[str, object], results: Sequence[Attainment]) -> None:
    write(path, {**setting, "topics": [asdict(result) for result in results]})


def _row(after: FollowUp) -> list[str]:
    precision = "" if after.precision is None else decimals(after.precision)
    return [str(after.accepted), precision, decimals(after.found), decimals(after.kept), decimals(after.abstained)]


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({decimals(part / whole)})" if whole else "")


def _median(numbers: Sequence[float]) -> float:
    ranked = sorted(numbers)
    return ranked[len(ranked) // 2] if ranked else 0.0
