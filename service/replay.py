"""Every model again, from its log alone.

    scripts/replay            derives everything that is not a log anew: heads, standing judgements, models, the list
    scripts/replay --verify   changes nothing; says for each topic whether its stored model is, bit for bit, what the
                              log says, and fails if one is not

A model whose log has gone on since it was stored (a process died in between) is behind, which is no damage: the service
folds the rest when it next looks. Its digest cannot be compared, so verifying says so.
"""

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import track

from service.background import Epochs
from service.config import Settings
from service.embedded import Embedded
from service.folding import Fold
from service.journal import resolve
from service.store import Head, Saved, Store

Outcome = Literal["equal", "behind", "different", "missing", "rebuilt"]


@dataclass(frozen=True, slots=True)
class Replayed:
    topic: str
    outcome: Outcome
    events: int
    digest: str


async def replay(store: Store, topic: str, settings: Settings, verify: bool) -> Replayed:
    """Folds one topic's log and compares the result with the stored model, or stores it."""
    events = await store.bare_log(topic)
    (head,) = await store.heads([topic])
    (stored,) = await store.models([topic])
    if head is None:
        floor = max((event.version for event in events if event.kind == "compacted"), default=0)
        head = Head(secrets.token_hex(8), events[-1].seq, floor)
    fold = Fold(topic, head, events, settings.served_weights)
    epoch = await Epochs(store).load(fold.lineage.epoch)
    served = fold.served(epoch)
    saved = Saved(head.born, served.version, served.to_bytes())
    if not verify:
        await store.rebuild(topic, head, {document: s.relevant for document, s in resolve(events).judged.items()})
        await store.forget_model(topic)
        await store.save(topic, saved, fold.record(served, saved.digest), settings.versions_kept)
        return Replayed(topic, "rebuilt", len(events), saved.digest)
    if stored is None:
        return Replayed(topic, "missing", len(events), saved.digest)
    if stored.version < saved.version:
        return Replayed(topic, "behind", len(events), saved.digest)
    return Replayed(topic, "equal" if stored.digest == saved.digest else "different", len(events), saved.digest)


async def replay_all(url: str, settings: Settings, verify: bool) -> list[Replayed]:
    store = Store(url, settings.store_timeout_s)
    try:
        topics = sorted([topic async for topic in store.logs()])
        return [await replay(store, topic, settings, verify) for topic in track(topics, "Replaying", transient=True)]
    finally:
        await store.close()


def main(
    verify: Annotated[bool, typer.Option(help="Compare digests and change nothing.")] = False,
    data: Annotated[Path | None, typer.Option(help="Directory of the embedded store.")] = None,
    redis: Annotated[str | None, typer.Option(help="Address of a store that is running.")] = None,
) -> None:
    """Recompute every model from its log."""
    settings = Settings.from_env(data=data, redis=redis)
    if settings.redis:
        replayed = asyncio.run(replay_all(settings.redis, settings, verify))
    else:
        with Embedded(settings.data) as embedded:
            replayed = asyncio.run(replay_all(embedded.url, settings, verify))
    for one in replayed:
        typer.echo(f"{one.outcome:10} {one.digest}  {one.topic} ({one.events} events)")
    wrong = [one for one in replayed if one.outcome in ("different", "missing")]
    typer.echo(f"{len(replayed)} topics, {len(wrong)} not as their log says")
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
