"""How a topic has done, through the API: figures with intervals, drift, floods, and probabilities that hold."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import Api, running_api
from tests.support.streaming import classify, grain, oil, status

FIGURES = ("precision", "recall", "f1", "error", "abstain", "sap", "r_precision", "break_even", "t11su")


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def metrics(api: Api, topic: str = "crude") -> Any:
    return await api.ok("GET", f"/topics/{topic}/metrics")


async def judge(api: Api, documents: list[Any], relevant: bool, topic: str = "crude") -> Any:
    ids = [one["id"] for one in documents]
    judgements = [{"topic": topic, "document": document, "relevant": relevant} for document in ids]
    return (await api.ok("POST", "/feedback", {"judgements": judgements}))["results"]


async def half(api: Api, n: int, prefix: str = "h") -> None:
    """Documents that are shown, of which every other is relevant: those with a certain word."""
    shown = [
        one | {"text": f"{one['text']} {'tanker tanker' if i % 2 else 'quota quota'}"}
        for i, one in enumerate(oil(n, prefix))
    ]
    await classify(api, shown)
    judgements = [{"topic": "crude", "document": one["id"], "relevant": i % 2 == 1} for i, one in enumerate(shown)]
    await api.ok("POST", "/feedback", {"judgements": judgements})


# -- figures -----------------------------------------------------------------------------------------------------------


async def test_of_a_new_topic_nothing_is_known(api: Api) -> None:
    await api.topic()
    report = await metrics(api)
    assert all(report[name] is None for name in FIGURES)
    assert (report["judgements"], report["series"]) == (0, [])
    assert (report["drift"]["drifting"], report["drift"]["since"]) == (False, None)
    assert report["drift"]["detail"] == "No decision has been judged yet."
    assert report["reliability"] == {"bins": [], "brier": None}
    assert report["t11su_of_nothing"] == pytest.approx(1 / 3, abs=1e-6)
    assert (await api.request("GET", "/topics/none/metrics")).status_code == 404


async def test_a_judged_stream_has_figures_each_with_an_interval_and_as_a_series(api: Api) -> None:
    await api.topic(audit=1.0)
    relevant, others = oil(60), grain(120)
    await classify(api, [*relevant, *others], topics=["crude"])
    for start in range(0, 60, 20):
        await judge(api, relevant[start : start + 20], True)
        await judge(api, others[start : start + 20], False)
    report = await metrics(api)
    assert report["judgements"] == 120
    for name in FIGURES:
        figure = report[name]
        assert 0 <= figure["low"] <= figure["estimate"] <= figure["high"] <= 1, name
        assert figure["low"] < figure["high"], name
    assert report["precision"]["estimate"] > 0.5
    assert report["recall"]["low"] > 0.5
    assert [point["judgements"] for point in report["series"]] == [20] * 6
    assert [point["version"] for point in report["series"]] == [1 + 20 * n for n in range(1, 7)]
    assert all(set(FIGURES) < set(point) for point in report["series"])
    assert not report["drift"]["drifting"]


async def test_documents_that_were_brought_along_do_not_count(api: Api) -> None:
    await api.topic()
    for one in oil(12):
        await api.judge(one, True)
    assert (await metrics(api))["judgements"] == 0


async def test_a_text_that_comes_again_and_again_counts_once(api: Api) -> None:
    await api.topic()
    (text,) = oil(1)
    copies = [text | {"id": f"copy{n}"} for n in range(15)]
    await classify(api, copies)
    await judge(api, copies, True)
    report = await metrics(api)
    assert report["judgements"] == 1
    assert report["precision"]["low"] < 0.1


async def test_a_corrected_label_corrects_the_figures(api: Api) -> None:
    await api.topic()
    await classify(api, oil(10))
    outcomes = await judge(api, oil(10), True)
    accepted = [one["before"]["decision"] == "accept" for one in outcomes]
    assert sum(accepted) > sum(accepted[4:]) > 0
    await judge(api, oil(4), False)
    assert (await metrics(api))["precision"]["estimate"] == pytest.approx(sum(accepted[4:]) / sum(accepted), abs=1e-6)


async def test_the_figures_of_a_model_that_came_from_elsewhere_go_on(api: Api) -> None:
    await api.topic()
    await classify(api, oil(20))
    await judge(api, oil(10), True)
    file = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.ok("PUT", "/topics/crude/model", file)
    await judge(api, oil(20)[10:], True)
    assert (await metrics(api))["judgements"] == 20


async def test_confusion_counts_cover_all_that_passed(api: Api) -> None:
    await api.topic(audit=1.0)
    await classify(api, [*oil(20), *grain(30)])
    await judge(api, oil(20), True)
    await judge(api, grain(30), False)
    table = (await metrics(api))["confusion"]
    assert sum(part["documents"] for part in table.values()) == 50
    assert sum(part["relevant"]["estimate"] for part in table.values()) == pytest.approx(20)
    assert sum(part["irrelevant"]["estimate"] for part in table.values()) == pytest.approx(30)


async def test_the_overview_averages_over_topics_and_over_documents(api: Api) -> None:
    empty = await api.ok("GET", "/metrics/overview")
    assert (empty["topics"], empty["judged"], empty["micro"]["precision"], empty["macro"]["sap"]) == (0, 0, None, None)
    for topic in ("crude", "other", "idle"):
        await api.topic(topic, audit=1.0)
    await classify(api, oil(30), topics=["crude"])
    await judge(api, oil(30), True)
    few = oil(6, "few")
    await classify(api, few, topics=["other"])
    for n, one in enumerate(few):
        await api.judge(one["id"], n % 2 == 0, "other")
    every = {topic: await metrics(api, topic) for topic in ("crude", "other")}
    report = await api.ok("GET", "/metrics/overview")
    assert (report["topics"], report["judged"]) == (3, 2)
    figures = [every[topic]["precision"]["estimate"] for topic in every]
    accepted = [every[topic]["confusion"]["accepted"]["documents"] for topic in every]
    assert report["macro"]["precision"]["estimate"] == pytest.approx(sum(figures) / 2, abs=1e-5)
    pooled = sum(f * n for f, n in zip(figures, accepted, strict=True)) / sum(accepted)
    assert report["micro"]["precision"]["estimate"] == pytest.approx(pooled, abs=1e-5)
    assert report["micro"]["precision"]["topics"] == 2
    for averages in (report["micro"], report["macro"]):
        for figure in averages.values():
            assert figure is None or 0 <= figure["low"] <= figure["estimate"] <= figure["high"] <= 1


# -- drift and flow ----------------------------------------------------------------------------------------------------


async def test_a_change_of_what_is_wanted_is_noticed_and_dated(api: Api) -> None:
    await api.topic()
    documents = oil(100)
    await classify(api, documents[:60])
    await judge(api, documents[:60], True)
    assert not (await metrics(api))["drift"]["drifting"]
    await classify(api, documents[60:])
    await judge(api, documents[60:], False)
    report = (await metrics(api))["drift"]
    assert report["drifting"]
    assert report["version"] == 62
    assert report["since"] is not None
    assert "40" in report["detail"]


async def test_judging_the_relevant_ones_first_and_the_others_after_is_no_change(api: Api) -> None:
    await api.topic(goal={"min_precision": 0.9})
    documents = oil(100)
    for start in (0, 50):
        await classify(api, documents[start : start + 50])
    await judge(api, documents[::2], True)
    await judge(api, documents[1::2], False)
    report = (await metrics(api))["drift"]
    assert not report["drifting"], report
    assert "has become worse" not in (await status(api))["goal"]["detail"]


async def test_a_topic_that_accepts_everything_is_flooded(api: Api) -> None:
    await api.topic()
    await classify(api, oil(300))
    report = (await metrics(api))["flow"]
    assert (report["silent"], report["flooded"]) == (False, True)
    assert "300" in report["detail"]


async def test_a_topic_from_which_nothing_comes_any_more_is_silent_until_something_does(api: Api) -> None:
    """What passed lately is the newest ten thousand documents."""
    await api.topic()
    await classify(api, oil(300))
    for start in range(0, 10_000, 1000):
        await classify(api, [{"id": f"n{n}", "text": f"wheat a{n} b{n} c{n} d{n}"} for n in range(start, start + 1000)])
    report = (await metrics(api))["flow"]
    assert (report["silent"], report["flooded"]) == (True, False)
    assert report["detail"].startswith("None of the last")
    await classify(api, oil(5, "again"))
    assert (await metrics(api))["flow"] == {"silent": False, "flooded": False, "detail": ""}


# -- probability -------------------------------------------------------------------------------------------------------


async def test_a_probability_is_given_once_there_is_evidence_and_rises_with_the_score(api: Api) -> None:
    await api.topic()
    asked = [*oil(20, "x"), *grain(10, "y")]
    before = await classify(api, asked, topics=["crude"], store=False)
    assert {one["decisions"][0]["probability"] for one in before} == {None}
    await half(api, 60)
    after = [one["decisions"][0] for one in await classify(api, asked, topics=["crude"], store=False)]
    ranked = [one["probability"] for one in sorted(after, key=lambda one: one["score"])]
    assert all(0 < probability < 1 for probability in ranked)
    assert ranked == sorted(ranked)
    assert ranked[0] < ranked[-1]


async def test_where_a_rule_decides_there_is_no_probability(api: Api) -> None:
    await api.topic(rules={"accept_if": "wheat", "reject_if": None})
    await half(api, 60)
    ruled = await api.decide({"text": "wheat and maize"})
    assert (ruled["decided_by"], ruled["probability"]) == ("accept_if", None)
    assert (await api.decide({"text": "crude oil"}))["probability"] is not None


async def test_probabilities_are_held_against_the_judgements_that_follow(api: Api) -> None:
    await api.topic()
    await half(api, 40)
    assert (await metrics(api))["reliability"]["bins"] == []
    await half(api, 40, "again")
    report = (await metrics(api))["reliability"]
    assert sum(one["documents"] for one in report["bins"]) > 20
    for one in report["bins"]:
        assert one["low"] <= one["probability"] <= one["high"]
        assert 0 <= one["observed"]["low"] <= one["observed"]["estimate"] <= one["observed"]["high"] <= 1
    assert 0 <= report["brier"]["low"] <= report["brier"]["estimate"] <= report["brier"]["high"] <= 1


async def test_a_model_that_is_loaded_again_gives_the_same_probability(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic()
        await half(api, 60)
        decision = await api.decide(oil(1, "x")[0])
    async with running_api(redis_url) as api:
        assert await api.decide(oil(1, "x")[0]) == decision
