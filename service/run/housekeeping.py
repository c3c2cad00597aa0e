"""The housekeeper, a process of its own: does what no request should wait for and nobody asks for.

    python -m service.run.housekeeping

* Makes the next projection of the stream when it is time (see topics/projections.py), and publishes an epoch with it.
* Refreshes topics whose background is old: their queries are weighted by the current frequencies of words, and their
  thresholds chosen against the current stream. That is an event of the log like any other. A topic that promises a
  limit to its abstentions is refreshed sooner, since the stream moves on even if nobody judges; and one from the
  beginning of the stream at once, since it knows nothing of it. One that is still under an earlier projection is
  refreshed, too, MAX_MOVED of them in a round, since all their judgements are folded again;
  if a job had fitted its model, it is submitted to be fitted again.
* Submits a retraining job for topics whose policy says that one is due (see topics/retrain_policy.py).
* Saves how many topics' goals are in which state, every GOALS_S, for Prometheus (see api/prometheus.py), and announces
  those that have changed their state (feedback/goals.py).
* Forgets epochs that no topic uses any more, except the newest, and those that came with an imported topic recently.
* Polls the sources that are due (sources/polling.py), beside all of this.
* Folds logs that are ahead of their models because a process died in between (topics/sync.py, as in every process).

It keeps no state. Any number may run; what two do at once is done once (compare-and-set), or twice without harm.
"""

import asyncio
import math
import time
from collections import Counter
from functools import partial

import structlog

from models.goals.reporting.report import STATES
from service import logs
from service.clock import now_ms
from service.config import Config
from service.errors import Conflict, NotFound, StoreUnavailable
from service.jobs.jobs import new_id
from service.schemas.jobs import Retrain
from service.sluice import Sluice
from service.store.topics import Store
from service.tasks import cancel_all, stopped_by_signals
from service.topics.background import KEPT_EPOCHS, epoch_number, max_epochs_behind, place_of
from service.topics.projecting import update_projection
from service.topics.published import PublishedModel, Recipe
from service.topics.retrain_policy import LastRetrain, policy_of, retrain_due
from service.topics.state import TopicState

GOALS_S = 60
MAX_MOVED = 50  # topics that are moved to another projection in a round

log = structlog.get_logger("sluice.run")


async def main() -> None:
    config = Config.from_env()
    logs.configure(config.log_level)
    sluice = Sluice(config, Store(config.redis or "", config.store_timeout_s))
    stopping = stopped_by_signals()
    await sluice.start()
    polling = asyncio.create_task(sluice.sources.polling.run())
    polling.add_done_callback(lambda task: _polling_ended(task, stopping))
    goals_s = -math.inf
    while not stopping.is_set():
        try:
            if sluice.sync.ready.is_set():  # before that, it would seem that no topic uses any epoch
                await keep_house(sluice)
                if time.monotonic() - goals_s > GOALS_S:
                    await save_goals(sluice)
                    goals_s = time.monotonic()
        except StoreUnavailable as error:
            log.warning("lost the store", detail=error.detail)
        try:
            await asyncio.wait_for(stopping.wait(), config.sweep_s)
        except TimeoutError:
            continue
    await cancel_all([polling])
    await sluice.stop()


def _polling_ended(polling: asyncio.Task[None], stopping: asyncio.Event) -> None:
    """Stops the process if polling failed, which would be a bug: the supervisor starts it again."""
    if not polling.cancelled() and (error := polling.exception()):
        log.error("polling failed", exc_info=error)
        stopping.set()


async def keep_house(sluice: Sluice) -> None:
    """Does one round over all topics."""
    await sluice.epochs.follow()
    await update_projection(sluice.store, sluice.epochs, sluice.config.semantic)
    current = sluice.epochs.current.number
    in_use, left = {current}, MAX_MOVED
    lent, projected = await sluice.store.epochs.lent(), await sluice.store.epochs.projected()
    for served in list(sluice.registry.topics.values()):
        in_use.add(served.epoch)
        began = lent.get(served.epoch, served.epoch)
        behind, place = place_of(current) - place_of(began), place_of(began)
        moves = served.settings.semantic and left > 0 and projected.get(began) != projected.get(current)
        if moves or behind > max_epochs_behind(place, served.settings.goal.max_abstain):
            left -= moves
            try:
                await sluice.topics.refresh(served.topic)
                if moves and (recipe := await sluice.learning.read(served.topic, _recipe_if_stale)):
                    await sluice.refit(served.topic, recipe)
            except (NotFound, Conflict):
                continue  # deleted meanwhile, or too busy: next time
            except (ArithmeticError, ValueError, LookupError) as error:
                log.error("topic cannot be folded", topic=served.topic, exc_info=error)
    await _retrain(sluice)
    await sluice.store.epochs.forget(epoch_number(place_of(current) - KEPT_EPOCHS + 1), in_use)


def _recipe_if_stale(state: TopicState) -> Recipe | None:
    return state.recipe_if_stale(())


async def save_goals(sluice: Sluice) -> None:
    """Saves how many goals are in which state, and announces those that have changed."""
    with_goal = [served for served in list(sluice.registry.topics.values()) if served.settings.goal.asks]
    found = Counter(goal.state for goal in await sluice.goals.announce(with_goal) if goal)
    await sluice.store.counts.save_goals({state: found[state] for state in STATES}, 3 * GOALS_S)


async def _retrain(sluice: Sluice) -> None:
    """Submits the retrainings that are due."""
    policies = {served: policy_of(served, sluice.config) for served in list(sluice.registry.topics.values())}
    topics = [served for served, policy in policies.items() if policy]
    for served, count in zip(topics, await sluice.counters.load([served.topic for served in topics]), strict=True):
        policy, last = policies[served], count.retrained
        if policy is None or policy.method is None or not retrain_due(policy, served, last, now_ms()).due:
            continue
        since = last.version if last else 0
        try:
            new = await sluice.learning.read(served.topic, partial(TopicState.judged_since, version=since))
        except NotFound:
            continue  # deleted meanwhile
        except (ArithmeticError, ValueError, LookupError) as error:
            log.error("topic cannot be folded", topic=served.topic, exc_info=error)
            continue
        if not new:  # the events since then were not judgements: its own publication, a refreshed background
            await _mark(sluice, served, last, LastRetrain(served.version, now_ms(), last.job if last else ""))
            continue
        if not retrain_due(policy, served, last, now_ms(), new).due:
            continue
        job = LastRetrain(served.version, now_ms(), new_id())
        request = Retrain(
            kind="retrain", topics=[served.topic], method=policy.method, params=policy.params, publish=policy.publish
        )
        if await _mark(sluice, served, last, job):
            try:
                await sluice.jobs.submit_as(job.job, request)
            except Conflict as error:  # too many jobs wait: try again in a later round
                log.warning("retraining is postponed", topic=served.topic, detail=error.detail)
                await _mark(sluice, served, job, last)
                return


async def _mark(sluice: Sluice, served: PublishedModel, old: LastRetrain | None, new: LastRetrain | None) -> bool:
    """Replaces the note of what was submitted last; False if another housekeeper was faster."""
    expected, note = (last.to_text() if last else "" for last in (old, new))
    return await sluice.store.counts.mark_retrained(served.topic, served.born, expected=expected, note=note)


if __name__ == "__main__":
    asyncio.run(main())
