"""Every model again, from its log alone.

    scripts/replay            derives everything that is not a log anew: heads, standing judgements, models, the list
    scripts/replay --verify   changes nothing; says for each topic whether its stored model is, bit for bit, what the
                              log says, and fails if one is not

Both may be run while the service runs. A model whose log has gone on since it was stored (a process died in between, or
is at it) is behind, which is no damage: the service folds the rest when it next looks. Its digest cannot be compared,
so verifying says so.

A list of versions that was lost comes back as far as the log tells: each event with its time and cause, no figures.
"""

import asyncio
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import structlog
import typer
from rich.console import Console
from rich.progress import track

from service import logs
from service.config import Config, StartError
from service.errors import StoreUnavailable
from service.store.embedded import Embedded, running
from service.store.log import Head
from service.store.topics import Store
from service.store.versions import Saved
from service.topics.background import Epochs
from service.topics.settings import TopicSettings
from service.topics.state import TopicState, record

ATTEMPTS = 20
Outcome = Literal["equal", "behind", "different", "missing", "broken", "rebuilt"]

log = structlog.get_logger("sluice.run")


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    topic: str
    outcome: Outcome
    events: int
    digest: str


async def replay(
    store: Store, topic: str, settings: Config, verify: bool, epochs: Epochs | None = None
) -> ReplayOutcome:
    """Folds one topic's log and compares the result with the stored model, or stores it."""
    epochs = epochs or Epochs(store)
    for _ in range(ATTEMPTS):
        (stored,) = await store.versions.load([topic])  # before the log, so that it cannot be ahead of what we read
        fold = await read(store, topic, settings)
        served = fold.build_model(await epochs.load(fold.resolved.epoch))
        saved = Saved(fold.head.born, served.version, served.to_bytes())
        if verify:
            outcome = compare(stored, saved, await store.versions.load_digest(topic))
            return ReplayOutcome(topic, outcome, len(fold.events), saved.digest)
        judged = {document: standing.relevant for document, standing in fold.resolved.judged.items()}
        records = dict(list(past_records(fold).items())[-settings.versions_kept :])
        if await store.rebuild(topic, fold.head, judged, records):
            await store.versions.save(topic, saved, fold.record(served, saved.digest), settings.versions_kept)
            return ReplayOutcome(topic, "rebuilt", len(fold.events), saved.digest)
        # Somebody has judged since we read.
    return ReplayOutcome(topic, "behind", len(fold.events), saved.digest)


async def read(store: Store, topic: str, settings: Config) -> TopicState:
    """The fold over a log, whatever else is lost."""
    (head,) = await store.heads([topic])
    events = await store.logs.load_bare(topic)
    if head is None:
        floor = max((event.version for event in events if event.kind == "compacted"), default=0)
        head = Head(secrets.token_hex(8), 0, floor)
    return TopicState(topic, replace(head, seq=events[-1].seq), events, settings.served_weights)


def compare(stored: Saved | None, saved: Saved, digest: str | None) -> Outcome:
    if stored is None:
        return "missing"
    if stored.version < saved.version:
        return "behind"
    return "equal" if saved.digest == stored.digest == digest else "different"


def past_records(fold: TopicState) -> dict[int, str]:
    """What the list of versions can say of the versions before the last, from the log alone."""
    kind = ""
    records: dict[int, str] = {}
    for event in fold.events[:-1]:
        if event.settings:
            kind = TopicSettings.model_validate_json(event.settings).learner.kind
        if event.seq >= fold.head.floor:
            records[event.seq] = record(event, kind, None, None)
    return records


async def replay_all(url: str, settings: Config, verify: bool) -> list[ReplayOutcome]:
    store = Store(url, settings.store_timeout_s)
    epochs = Epochs(store)
    replayed: list[ReplayOutcome] = []
    shown = sys.stderr.isatty()
    try:
        topics = sorted([topic async for topic in store.logs.topics()])
        for topic in track(topics, "Replaying", transient=True, console=Console(stderr=True), disable=not shown):
            try:
                replayed.append(await replay(store, topic, settings, verify, epochs))
            except (ArithmeticError, ValueError, LookupError) as error:
                # One log that cannot be folded must not keep the others from it.
                log.error("topic cannot be folded", topic=topic, exc_info=error)
                replayed.append(ReplayOutcome(topic, "broken", 0, "-" * 32))
    finally:
        await store.close()
    return replayed


def main(
    verify: Annotated[bool, typer.Option(help="Compare digests and change nothing.")] = False,
    data: Annotated[Path | None, typer.Option(help="Directory of the embedded store.")] = None,
    redis: Annotated[str | None, typer.Option(help="Address of a store that is running.")] = None,
) -> None:
    """Recompute every model from its log."""
    try:
        settings = Config.from_env(data=data, redis=redis)
        logs.configure(settings.log_level)
        replayed = _replayed(settings, verify)
    except (StartError, StoreUnavailable) as error:
        print(f"sluice: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    for one in replayed:
        typer.echo(f"{one.outcome:10} {one.digest}  {one.topic} ({one.events} events)")
    wrong = [one for one in replayed if one.outcome in ("different", "missing", "broken")]
    typer.echo(f"{len(replayed)} topics, {len(wrong)} not as their log says")
    raise typer.Exit(1 if wrong else 0)


def _replayed(settings: Config, verify: bool) -> list[ReplayOutcome]:
    if url := settings.redis or running(settings.data):
        return asyncio.run(replay_all(url, settings, verify))
    if not (settings.data / "appendonlydir").exists():
        raise StartError(f"There is no store in {settings.data}: name one with --data or --redis.")
    with Embedded(settings.data) as embedded:
        return asyncio.run(replay_all(embedded.url, settings, verify))


if __name__ == "__main__":
    typer.run(main)
