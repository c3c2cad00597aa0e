"""Metrics of the whole service, for Prometheus: those that all processes on all machines share, from the store.

Every process reports the same. Counters are incremented at each event; none is a sum over topics or routes, which
may be deleted, so none goes backwards. What needs every topic is computed by the housekeeper, every minute
(`sluice_goals`). A setting limits how many topics have series of their own: the oldest ones, so that new topics change
nothing. Rejections are not counted (see topics/counts.py); they are the rest of the documents.

While the store does not answer, `sluice_store_up` is 0 and what comes from the store is left out.
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
from service.store.jobs import STATES
from service.store.sources import SourceTotals
from service.store.stream.inbox import InboxStatus
from service.store.stream.routes import DeliveryTotals
from service.topics.counts import TopicCounts
from service.topics.published import PublishedModel

Values = float | Mapping[Any, float]  # one value, or one for each value of the label


async def service_metrics(sluice: Sluice, version: str) -> list[Metric]:
    published = list(sluice.registry.topics.values())
    judged = await sluice.pool.run(_judged, published)
    shown = await sluice.pool.run(nsmallest, sluice.config.metrics_topics, published, key=_age)
    try:
        stored = await _stored(sluice, shown)
    except StoreUnavailable:
        stored = []
    return [
        _gauge("sluice_build_info", "1, with the version of the service.", {version: 1}, "version"),
        _gauge("sluice_store_up", "1 if the store answers.", bool(stored)),
        _gauge("sluice_judgements", "Current judgements, over all topics.", judged, "label"),
        *stored,
    ]


async def _stored(sluice: Sluice, shown: Sequence[PublishedModel]) -> list[Metric]:
    passed, decided = await sluice.store.counts.totals()
    used, limit = await sluice.store.memory()
    goals = await sluice.store.counts.load_goals()
    jobs = dict.fromkeys(STATES, 0) | await sluice.jobs.states()
    counts = await sluice.counters.load([published.topic for published in shown])
    decisions = {decision: decided.get(decision, 0) for decision in ("accept", "abstain")}
    return [
        _counter("sluice_documents", "New documents, over HTTP and from sluice:in.", passed + decided.get("named", 0)),
        _counter("sluice_decisions", "Decisions other than reject, over all topics.", decisions, "decision"),
        _gauge("sluice_topics", "Topics.", await sluice.store.count_topics()),
        _gauge("sluice_goals", "Topics with a goal, by its state; updated every minute.", goals, "state"),
        _gauge("sluice_jobs", "Background jobs, by state.", jobs, "state"),
        _gauge("sluice_store_memory_bytes", "Memory used by the store.", used),
        _gauge("sluice_store_memory_limit_bytes", "Memory limit of the store; 0: none.", limit),
        *_flow(await sluice.inbox.load_status()),
        *_routes(await sluice.routes.load_totals()),
        *_sources(await sluice.store.sources.totals()),
        *await sluice.pool.run(_topics, shown, counts, sluice.config.audit_rate),
    ]


def _flow(inbox: InboxStatus) -> Iterator[Metric]:
    alive = {consumer.name: consumer.stats for consumer in inbox.consumers if consumer.stats}
    documents = {name: stats.documents for name, stats in alive.items()}
    dead = {name: stats.dead for name, stats in alive.items()}
    claimed = {name: stats.taken_over for name, stats in alive.items()}
    rates = {name: stats.per_s for name, stats in alive.items()}
    yield _gauge("sluice_in_lag", "Entries of sluice:in that were not delivered to a consumer yet.", inbox.lag)
    yield _gauge("sluice_in_lag_seconds", "Age of the oldest entry of sluice:in.", inbox.lag_s(now_ms()))
    yield _gauge("sluice_in_pending", "Entries of sluice:in that are being decided.", inbox.pending)
    yield _gauge("sluice_in_dead", "Entries kept in sluice:dead.", inbox.dead)
    yield _gauge("sluice_consumers", "Consumers that are alive.", len(alive))
    yield _counter("sluice_consumer_documents", "Documents decided by the consumer.", documents, "consumer")
    yield _counter("sluice_consumer_dead", "Entries that the consumer could not decide.", dead, "consumer")
    yield _counter("sluice_consumer_taken_over", "Entries that the consumer claimed from another.", claimed, "consumer")
    yield _gauge("sluice_consumer_documents_per_second", "Rate over the last ten seconds.", rates, "consumer")


def _routes(totals: DeliveryTotals) -> Iterator[Metric]:
    attempts = {result: totals.deliveries[result] for result in ("delivered", "failed")}
    yield _counter("sluice_deliveries", "Delivery attempts, by result.", attempts, "result")
    yield _counter("sluice_deliveries_given_up", "Deliveries that failed too often.", totals.deliveries["given_up"])
    if totals.states is not None:
        yield _gauge("sluice_routes", "Routes, by state.", totals.states, "state")
        yield _gauge("sluice_routes_pending", "Deliveries under way or to be retried.", totals.pending)
        yield _gauge("sluice_routes_dead", "Deliveries given up and kept.", totals.dead)


def _sources(totals: SourceTotals) -> Iterator[Metric]:
    yield _gauge("sluice_sources", "Sources, by state.", totals.states, "state")
    yield _gauge("sluice_sources_late_seconds", "How long a source has been due; 0 if none is.", totals.late_s)
    yield _counter("sluice_source_polls", "Polls of sources, by result.", totals.polls, "result")
    yield _counter("sluice_source_documents", "Documents that sources have given.", totals.documents)


def _topics(shown: Sequence[PublishedModel], counts: Sequence[TopicCounts], audit_rate: float) -> list[Metric]:
    documents = CounterMetricFamily("sluice_topic_documents", "Documents decided by the topic.", labels=["topic"])
    decisions = CounterMetricFamily(
        "sluice_topic_decisions", "Decisions other than reject.", labels=["topic", "decision"]
    )
    judged = GaugeMetricFamily("sluice_topic_judgements", "Current judgements.", labels=["topic", "label"])
    goals = GaugeMetricFamily("sluice_topic_goal", "1 for the current state of the goal.", labels=["topic", "state"])
    for published, of_topic in zip(shown, counts, strict=True):
        documents.add_metric([published.topic], of_topic.ever.documents)
        decisions.add_metric([published.topic, "accept"], of_topic.ever.accepted)
        decisions.add_metric([published.topic, "abstain"], of_topic.ever.abstained)
        judged.add_metric([published.topic, "relevant"], published.relevant)
        judged.add_metric([published.topic, "irrelevant"], published.irrelevant)
        if goal := report(published, of_topic, audit_rate):
            goals.add_metric([published.topic, goal.state], 1)
    return [documents, decisions, judged, goals]


def _judged(published: Sequence[PublishedModel]) -> dict[str, int]:
    relevant = sum(model.relevant for model in published)
    return {"relevant": relevant, "irrelevant": sum(model.irrelevant for model in published)}


def _age(published: PublishedModel) -> tuple[int, str]:
    return published.settings.created_ms, published.topic


def _counter(name: str, help: str, values: Values, label: str | None = None) -> Metric:
    return _filled(CounterMetricFamily(name, help, labels=[label] if label else []), values)


def _gauge(name: str, help: str, values: Values, label: str | None = None) -> Metric:
    return _filled(GaugeMetricFamily(name, help, labels=[label] if label else []), values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: Values) -> Metric:
    for labels, value in _rows(values):
        family.add_metric(labels, value)
    return family


def _rows(values: Values) -> Iterable[tuple[list[str], float]]:
    if isinstance(values, Mapping):
        return [([name], value) for name, value in values.items()]
    return [([], values)]
