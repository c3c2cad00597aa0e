"""Recomputes every model from its log alone.

    scripts/replay            rebuilds all that is not a log: heads, judgements in force, models, lists of versions
    scripts/replay --verify   changes nothing; reports for each topic whether its stored model is, bit for bit, what the
                              log gives, and fails if one is not

Both may be run while the service runs. A model is *behind* if its log has grown since it was stored (a process died in
between, or is about to store it). That is no damage, since the service folds the rest soon, but digests cannot be
compared.

A lost list of versions is rebuilt as far as the log goes: each event with its time and cause, without figures.
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
from service.sentences import number_of
from service.store.events import Head
from service.store.redis.embedded import Embedded, running
from service.store.topics import Store
from service.store.versions import Saved
from service.topics.background import Epochs
from service.topics.settings import TopicSettings
from service.topics.state import TopicState, version_record

MAX_ATTEMPTS = 20
Outcome = Literal["equal", "behind", "different", "missing", "broken", "rebuilt"]

log = structlog.get_logger("sluice.run")


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    topic: str
    outcome: Outcome
    events: int
    digest: str


async def replay(store: Store, topic: str, config: Config, verify: bool, epochs: Epochs | None = None) -> ReplayOutcome:
    """Folds one topic's log, and compares the result with the stored model or stores it."""
    epochs = epochs or Epochs(store)
    for _ in range(MAX_ATTEMPTS):
        (stored,) = await store.versions.load([topic])  # before the log, so that the model cannot be ahead of it
        state = await load_state(store, topic, config)
        served = state.build_model(await epochs.load(state.resolved.epoch))
        saved = Saved(state.head.born, served.version, served.to_bytes())
        if verify:
            outcome = compare(stored, saved, await store.versions.load_digest(topic))
            return ReplayOutcome(topic, outcome, len(state.events), saved.digest)
        judged = {document: judgement.label for document, judgement in state.resolved.judged.items()}
        records = dict(list(past_records(state).items())[-config.versions_kept :])
        if await store.rebuild(topic, state.head, judged, records):
            await store.versions.save(topic, saved, state.record(served, saved.digest), config.versions_kept)
            return ReplayOutcome(topic, "rebuilt", len(state.events), saved.digest)
        # Somebody has judged meanwhile.
    return ReplayOutcome(topic, "behind", len(state.events), saved.digest)


async def load_state(store: Store, topic: str, config: Config) -> TopicState:
    """Loads a topic's state from its log, whatever else is lost."""
    (head,) = await store.heads([topic])
    events = await store.logs.load_bare(topic)
    if head is None:
        floor = max((event.floor for event in events if event.kind == "compacted"), default=0)
        head = Head(secrets.token_hex(8), 0, floor)
    return TopicState(topic, replace(head, seq=events[-1].seq), events, config.served_weights)


def compare(stored: Saved | None, saved: Saved, digest: str | None) -> Outcome:
    if stored is None:
        return "missing"
    if stored.version < saved.version:
        return "behind"
    return "equal" if saved.digest == stored.digest == digest else "different"


def past_records(state: TopicState) -> dict[int, str]:
    """Rebuilds the list of versions before the last, as far as the log goes."""
    kind = ""
    records: dict[int, str] = {}
    for event in state.events[:-1]:
        if event.settings:
            kind = TopicSettings.model_validate_json(event.settings).learner.kind
        if event.seq >= state.head.floor:
            records[event.seq] = version_record(event, kind, None, None)
    return records


async def replay_all(url: str, config: Config, verify: bool) -> list[ReplayOutcome]:
    store = Store(url, config.store_timeout_s)
    epochs = Epochs(store)
    replayed: list[ReplayOutcome] = []
    shown = sys.stderr.isatty()
    try:
        topics = sorted([topic async for topic in store.logs.topics()])
        for topic in track(topics, "Replaying", transient=True, console=Console(stderr=True), disable=not shown):
            try:
                replayed.append(await replay(store, topic, config, verify, epochs))
            except (ArithmeticError, ValueError, LookupError) as error:
                # One log that cannot be folded must not stop the others.
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
        config = Config.from_env(data=data, redis=redis)
        logs.configure(config.log_level)
        replayed = _replay_store(config, verify)
    except (StartError, StoreUnavailable) as error:
        print(f"sluice: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    for result in replayed:
        typer.echo(f"{result.outcome:10} {result.digest}  {result.topic} ({number_of(result.events, 'event')})")
    wrong = [result for result in replayed if result.outcome in ("different", "missing", "broken")]
    typer.echo(f"Replayed {number_of(len(replayed), 'topic')} and found {number_of(len(wrong), 'problem')}.")
    raise typer.Exit(1 if wrong else 0)


def _replay_store(config: Config, verify: bool) -> list[ReplayOutcome]:
    if url := config.redis or running(config.data):
        return asyncio.run(replay_all(url, config, verify))
    if not (config.data / "appendonlydir").exists():
        raise StartError(f"There is no store in {config.data}: name one with --data or --redis.")
    with Embedded(config.data) as embedded:
        return asyncio.run(replay_all(embedded.url, config, verify))


if __name__ == "__main__":
    typer.run(main)
