"""The whole service as Prometheus sees it: what all processes on all machines have in common, from the store.

Whichever process is asked, the answer is the same. Counters are counted where things happen and never added up from
topics or routes that may be gone tomorrow, so that none goes backwards. What would need a look at every topic is
looked at by the worker, now and then (`sluice_goals`). Series of single topics are bounded by a setting: the oldest
topics have them, which stay the same when others are made. Rejections are not counted (see topics/counts.py); they are
what is left of the documents.

While the store does not answer, `sluice_store_up` is 0 and what it would know is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from service.clock import now_ms
from service.errors import StoreUnavailable
from service.feedback.goals import report
from service.sluice import Sluice
from service.store.inbox import InboxStatus
from service.store.jobs import STATES
from service.store.routes import DeliveryTotals
from service.topics.counts import TopicCounts
from service.topics.published import PublishedModel

Values = float | Mapping[Any, float]  # or one for each value of the label


async def overview(app: Sluice, version: str) -> list[Metric]:
    published = list(app.registry.topics.values())
    judged = await app.pool.run(_judged, published)
    shown = await app.pool.run(nsmallest, app.config.metrics_topics, published, key=_age)
    try:
        found = await _stored(app, shown)
    except StoreUnavailable:
        found = []
    return [
        _gauge("sluice_build_info", "The version that answers.", {version: 1}, "version"),
        _gauge("sluice_store_up", "Whether the store answers.", bool(found)),
        _gauge("sluice_judgements", "Judgements that stand, of all topics.", judged, "label"),
        *found,
    ]


async def _stored(app: Sluice, shown: Sequence[PublishedModel]) -> list[Metric]:
    passed, decided = await app.store.counts.totals()
    used, most = await app.store.memory()
    goals = await app.store.counts.load_goals()
    jobs = dict.fromkeys(STATES, 0) | await app.jobs.states()
    counts = await app.counters.load([one.topic for one in shown])
    decisions = {decision: decided.get(decision, 0) for decision in ("accept", "abstain")}
    return [
        _counter("sluice_documents", "Documents that have passed, each once.", passed + decided.get("named", 0)),
        _counter("sluice_decisions", "Decisions other than to reject, over all topics.", decisions, "decision"),
        _gauge("sluice_topics", "Topics.", await app.store.count_topics()),
        _gauge("sluice_goals", "Topics with a goal, by how it stands; looked at every minute.", goals, "state"),
        _gauge("sluice_jobs", "Background jobs that are remembered.", jobs, "state"),
        _gauge("sluice_store_memory_bytes", "Memory that the store holds.", used),
        _gauge("sluice_store_memory_limit_bytes", "Memory that the store may hold; 0: any.", most),
        *_flow(await app.inbox.load_status()),
        *_routes(await app.routes.load_totals()),
        *await app.pool.run(_topics, shown, counts),
    ]


def _flow(look: InboxStatus) -> Iterator[Metric]:
    alive = {one.name: one.stats for one in look.consumers if one.stats}
    yield _gauge("sluice_in_lag", "Entries of sluice:in that nobody has taken yet.", look.lag)
    yield _gauge("sluice_in_lag_seconds", "Age of the oldest entry of sluice:in.", look.lag_s(now_ms()))
    yield _gauge("sluice_in_pending", "Entries of sluice:in that were taken and are not decided.", look.pending)
    yield _gauge("sluice_in_dead", "Entries kept in sluice:dead.", look.dead)
    yield _gauge("sluice_consumers", "Consumers that are alive.", len(alive))
    for name, said, part in (
        ("documents", "Documents that a consumer has decided.", {name: one.documents for name, one in alive.items()}),
        ("dead", "Entries that a consumer could not decide.", {name: one.dead for name, one in alive.items()}),
        ("taken_over", "Entries that another had left behind.", {name: one.taken_over for name, one in alive.items()}),
    ):
        yield _counter(f"sluice_consumer_{name}", said, part, "consumer")
    rates = {name: one.per_s for name, one in alive.items()}
    yield _gauge("sluice_consumer_documents_per_second", "Of the last ten seconds.", rates, "consumer")


def _routes(look: DeliveryTotals) -> Iterator[Metric]:
    tried = {result: look.deliveries[result] for result in ("delivered", "failed")}
    yield _counter("sluice_deliveries", "Attempts to deliver along routes.", tried, "result")
    yield _counter("sluice_deliveries_given_up", "Deliveries that were given up.", look.deliveries["given_up"])
    if look.states is not None:
        yield _gauge("sluice_routes", "Routes, by how they stand.", look.states, "state")
        yield _gauge("sluice_routes_pending", "Deliveries in hand, or to be tried again.", look.pending)
        yield _gauge("sluice_routes_dead", "Deliveries that were given up and are kept.", look.dead)


def _topics(shown: Sequence[PublishedModel], counts: Sequence[TopicCounts]) -> list[Metric]:
    documents = CounterMetricFamily("sluice_topic_documents", "Documents put to the topic.", labels=["topic"])
    decisions = CounterMetricFamily(
        "sluice_topic_decisions", "Decisions other than to reject.", labels=["topic", "decision"]
    )
    judged = GaugeMetricFamily("sluice_topic_judgements", "Judgements that stand.", labels=["topic", "label"])
    goals = GaugeMetricFamily("sluice_topic_goal", "1 for the state that the goal is in.", labels=["topic", "state"])
    for published, of_topic in zip(shown, counts, strict=True):
        documents.add_metric([published.topic], of_topic.ever.documents)
        decisions.add_metric([published.topic, "accept"], of_topic.ever.accepted)
        decisions.add_metric([published.topic, "abstain"], of_topic.ever.abstained)
        judged.add_metric([published.topic, "relevant"], published.relevant)
        judged.add_metric([published.topic, "irrelevant"], published.irrelevant)
        if found := report(published, of_topic):
            goals.add_metric([published.topic, found.state], 1)
    return [documents, decisions, judged, goals]


def _judged(published: Sequence[PublishedModel]) -> dict[str, int]:
    return {"relevant": sum(one.relevant for one in published), "irrelevant": sum(one.irrelevant for one in published)}


def _age(published: PublishedModel) -> tuple[int, str]:
    return published.settings.created_ms, published.topic


def _counter(name: str, said: str, values: Values, label: str | None = None) -> Metric:
    return _filled(CounterMetricFamily(name, said, labels=[label] if label else []), values)


def _gauge(name: str, said: str, values: Values, label: str | None = None) -> Metric:
    return _filled(GaugeMetricFamily(name, said, labels=[label] if label else []), values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: Values) -> Metric:
    for labels, value in _rows(values):
        family.add_metric(labels, value)
    return family


def _rows(values: Values) -> Iterable[tuple[list[str], float]]:
    if isinstance(values, Mapping):
        return [([name], value) for name, value in values.items()]
    return [([], values)]
