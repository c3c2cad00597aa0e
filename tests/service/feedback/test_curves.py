"""What other cuts would give, through the API: error against loss, precision against recall."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import Api, running_api
from tests.support.streaming import classify, grain, oil, status


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def judge_half(api: Api, audited: bool = True) -> None:
    """A stream of which what is shown is half relevant, by words that the topic learns slowly, and audits are not."""
    shown = [one | {"text": f"{one['text']} {'tanker' if i % 2 else 'quota'}"} for i, one in enumerate(oil(60))]
    await classify(api, [*shown, *grain(60)], topics=["crude"])
    judged = [{"topic": "crude", "document": one["id"], "relevant": i % 2 == 1} for i, one in enumerate(shown)]
    judged += [{"topic": "crude", "document": one["id"], "relevant": False} for one in grain(60)] if audited else []
    await api.ok("POST", "/feedback", {"judgements": judged})


async def read(api: Api, what: str) -> Any:
    return await api.ok("GET", f"/topics/crude/{what}")


async def test_of_a_new_topic_there_is_no_curve_yet(api: Api) -> None:
    await api.topic()
    for what in ("tradeoff", "curve"):
        report = await read(api, what)
        assert (report["points"], report["now"], report["judgements"]) == ([], None, 0)
        assert report["detail"] == "No relevant document of the stream has been judged yet."
        assert (await api.get(f"/topics/none/{what}")).status_code == 404


async def test_more_undecided_means_less_error_and_the_topic_stands_on_or_above_the_curve(api: Api) -> None:
    await api.topic(audit=1.0)
    await judge_half(api)
    report = await read(api, "tradeoff")
    assert report["judgements"] == 120
    points, now = report["points"], report["now"]
    assert points[0]["loss"] == pytest.approx(0)
    assert [p["loss"] for p in points] == sorted({p["loss"] for p in points})
    assert [p["error"] for p in points] == sorted({p["error"] for p in points}, reverse=True)
    for point in (*points, now):
        assert 0 <= point["low"] <= point["error"] <= point["high"] <= 1
        assert point["reject_below"] <= point["accept_above"]
    cuts = await status(api)
    assert (now["reject_below"], now["accept_above"]) == (cuts["reject_below"], cuts["accept_above"])
    within = [point["error"] for point in points if point["loss"] <= now["loss"] + 0.02]
    assert min(within) <= now["error"] + 1e-6
    assert report["detail"] == ""


async def test_without_audits_misses_are_in_the_bounds(api: Api) -> None:
    await api.topic(audit=0)
    await judge_half(api, audited=False)
    report = await read(api, "tradeoff")
    assert report["points"]
    assert "Nothing is known about" in report["detail"]
    assert report["now"]["high"] > 0.4
    curve = await read(api, "curve")
    assert curve["points"][0]["recall"]["low"] < 0.5


async def test_precision_and_recall_are_told_for_every_cut(api: Api) -> None:
    await api.topic(audit=1.0)
    await judge_half(api)
    report = await read(api, "curve")
    points = report["points"]
    cuts = [point["accept_above"] for point in points]
    assert cuts == sorted(cuts, reverse=True)
    recalls = [point["recall"]["estimate"] for point in points]
    assert recalls == sorted(recalls)
    assert recalls[-1] == 1
    assert points[-1]["precision"]["estimate"] == pytest.approx(30 / 120)
    for point in (*points, report["now"]):
        for figure in (point["precision"], point["recall"]):
            assert 0 <= figure["low"] <= figure["high"] <= 1
    assert 0.25 <= report["break_even"] <= 1
    assert report["now"]["accept_above"] == (await status(api))["accept_above"]
