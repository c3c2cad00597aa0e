"""How a goal stands, through the API: from judgements of the stream, with bounds, and recall over all topics."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import Api, running_api
from tests.support.refusals import refused
from tests.support.streaming import classify, grain, oil, status

PARTS = {"precision", "recall", "error", "abstain"}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def judge_all(api: Api, topic: str, n: int) -> None:
    """Oil is relevant and grain is not, whatever was decided."""
    judgements = [{"topic": topic, "document": f"o{i}", "relevant": True} for i in range(n)]
    judgements += [{"topic": topic, "document": f"g{i}", "relevant": False} for i in range(n)]
    await api.ok("POST", "/feedback", {"judgements": judgements})


async def test_without_a_goal_nothing_is_said(api: Api) -> None:
    await api.topic()
    assert (await status(api))["goal"] is None


async def test_a_goal_begins_with_learning_and_says_only_what_was_asked(api: Api) -> None:
    made = await api.topic(goal={"min_precision": 0.9, "max_abstain": 0.2})
    goal = made["status"]["goal"]
    assert goal["state"] == "learning"
    assert goal["detail"].endswith(".")
    assert {name for name in PARTS if goal[name]} == {"precision", "abstain"}
    for name in ("precision", "abstain"):
        assert set(goal[name]) == {"state", "estimate", "low", "high", "confidence", "judged", "detail", "needed"}


async def test_judgements_of_what_passed_are_evidence_and_those_brought_along_are_not(api: Api) -> None:
    goal = {"min_precision": 0.8, "min_recall": 0.5, "max_error": 0.5, "max_abstain": 0.9}
    for topic in ("stream", "brought"):
        await api.topic(topic, goal=goal, audit=1.0)
    await classify(api, [*oil(100), *grain(300)], topics=["stream"])
    await judge_all(api, "stream", 100)
    brought = [{"topic": "brought", "document": one | {"id": f"b{one['id']}"}, "relevant": True} for one in oil(100)]
    await api.ok("POST", "/feedback", {"judgements": brought})
    report = (await status(api, "stream"))["goal"]
    for name in PARTS:
        part = report[name]
        assert part["judged"] > 0, name
        if part["estimate"] is not None:
            assert 0 <= part["low"] <= part["estimate"] <= part["high"] <= 1, name
    assert report["precision"]["state"] == "met", report
    assert report["recall"]["estimate"] is not None
    other = (await status(api, "brought"))["goal"]
    assert (other["precision"]["judged"], other["recall"]["judged"]) == (0, 0)
    assert other["state"] == "learning"


async def test_the_abstained_share_is_what_passed_lately(api: Api) -> None:
    await api.topic(goal={"max_abstain": 0.5})
    await classify(api, [*oil(150), *grain(150)])
    now = await status(api)
    assert now["goal"]["abstain"]["estimate"] == pytest.approx(now["passed"]["abstained"] / 300)
    assert now["goal"]["abstain"]["judged"] == 300


async def test_what_was_decided_by_other_cut_offs_says_nothing_of_a_new_goal(api: Api) -> None:
    await api.topic(goal={"max_abstain": 0.9})
    await classify(api, [*oil(150), *grain(150)], topics=["crude"])
    assert (await status(api))["goal"]["abstain"]["judged"] == 300
    preview = await api.ok("POST", "/topics/crude/preview", {"goal": {"max_abstain": 0.1}})
    changed = await api.ok("PATCH", "/topics/crude", {"goal": {"max_abstain": 0.1}})
    for goal in (changed["status"]["goal"], preview["after"]["goal"]):
        assert (goal["abstain"]["state"], goal["abstain"]["judged"]) == ("learning", 0)
    assert changed["status"]["passed"]["documents"] == 300
    await classify(api, oil(20, "late-"), topics=["crude"])
    assert (await status(api))["goal"]["abstain"]["judged"] == 20
    await api.ok("PATCH", "/topics/crude", {"name": "Oil"})
    assert (await status(api))["goal"]["abstain"]["judged"] == 20
    await api.ok("POST", "/topics/crude/versions/1/restore")
    assert (await status(api))["goal"]["abstain"]["judged"] == 0


async def test_a_measure_is_maximised_and_said_to_be(api: Api) -> None:
    await api.topic(goal={"maximise": {"f_beta": 0.5}, "max_abstain": 0.5})
    assert (await status(api))["goal"]["maximise"]["state"] == "learning"
    await classify(api, [*oil(60), *grain(60)])
    await judge_all(api, "crude", 60)
    cuts = {}
    for name, measure in (
        ("precise", {"f_beta": 0.3}),
        ("complete", {"f_beta": 4.0}),
        ("cheap", {"utility": {"hit": 10.0, "false_alarm": 0.1}}),
        ("dear", {"utility": {"hit": 1.0, "false_alarm": 20.0, "miss": 0.5}}),
        ("even", "break_even"),
    ):
        preview = await api.ok("POST", "/topics/crude/preview", {"goal": {"maximise": measure}})
        changed = await api.ok("PATCH", "/topics/crude", {"goal": {"maximise": measure}})
        cuts[name] = changed["status"]["accept_above"]
        assert preview["after"]["accept_above"] == cuts[name]
        goal = changed["status"]["goal"]
        assert goal["state"] == goal["maximise"]["state"] == "met", goal
        assert goal["maximise"]["estimate"] > 0
        assert "accepted above the threshold" in goal["detail"]
        assert (await api.ok("GET", "/topics/crude"))["goal"]["maximise"] == changed["goal"]["maximise"]
    assert cuts["cheap"] <= cuts["complete"] <= cuts["precise"] <= cuts["dear"]
    assert cuts["cheap"] < cuts["dear"]
    assert changed["goal"] == {"maximise": "break_even", "mode": "best"}
    restored = await api.ok("POST", "/topics/crude/versions/1/restore")
    assert restored["goal"]["maximise"] == {"f_beta": 0.5}


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ({"maximise": "f1"}, "break_even"),
        ({"maximise": {}}, "Give either `f_beta` or `utility`"),
        ({"maximise": {"f_beta": 0}}, "must be above 0"),
        ({"maximise": {"f_beta": 2.0, "utility": {}}}, "Give either `f_beta` or `utility`"),
        ({"maximise": {"utility": {"hit": 0.0}}}, "nothing would ever be accepted"),
        ({"maximise": {"utility": {"gain": 1.0}}}, "gain"),
        ({"maximise": {"f_beta": 2.0}, "min_precision": 0.9}, "leave out `maximise`"),
        ({"maximise": "break_even", "max_error": 0.1}, "leave out `maximise`"),
    ],
)
async def test_what_cannot_be_maximised_is_refused_and_nothing_changes(
    api: Api, goal: dict[str, Any], says: str
) -> None:
    await api.topic()
    problem = refused(await api.patch("/topics/crude", json={"goal": goal}), 422)
    assert says in str(problem)
    assert (await api.ok("GET", "/topics/crude"))["goal"] == {}


async def test_a_promise_is_at_risk_when_nobody_judges_what_is_accepted_and_review_then_offers_that(api: Api) -> None:
    await api.topic(goal={"min_precision": 0.8, "max_abstain": 0.9})
    await classify(api, [*oil(80), *grain(200)])
    await judge_all(api, "crude", 80)
    await classify(api, oil(20, "p"))
    await api.ok("POST", "/feedback", {"topic": "crude", "document": "p0", "relevant": True})
    promised = (await status(api))["goal"]
    assert promised["state"] == "met"
    judged = promised["precision"]["judged"]
    for start in range(0, 2 * judged + 400, 40):  # and more than some pauses of fifty
        await classify(api, oil(40, f"q{start}-"))
    forgotten = (await status(api))["goal"]
    assert (forgotten["state"], forgotten["precision"]["state"]) == ("at_risk", "at_risk")
    assert "accepted documents has been judged: judge some of them" in forgotten["detail"]
    page = await api.ok("GET", "/topics/crude/review", params={"limit": 10})
    assert {item["reason"] for item in page["items"]} == {"likely", "audit"}
    assert (page["enough"], page["detail"]) == (False, forgotten["detail"])
    await api.ok("POST", "/feedback", {"topic": "crude", "document": page["items"][0]["document"], "relevant": True})
    assert (await status(api))["goal"]["state"] == "met"


async def test_recall_is_pooled_over_all_topics_that_audit(api: Api) -> None:
    async def pooled() -> Any:
        return await api.ok("GET", "/recall")

    assert (await pooled())["topics"] == 0
    for topic in ("one", "two"):
        await api.topic(topic, goal={"min_recall": 0.9}, audit=1.0)
    await api.topic("deaf", audit=0)
    await api.topic("unasked")
    recall = await pooled()
    assert (recall["topics"], recall["estimate"], recall["audits"]) == (2, None, 0)
    await classify(api, [*oil(50), *grain(250)])
    await api.ok("POST", "/feedback", {"topic": "one", "document": oil(1)[0]["id"], "relevant": True})
    recall = await pooled()
    assert (recall["estimate"], recall["audits"]) == (None, 0)
    assert 0 < recall["low"] < recall["high"] == 1
    detail = f"At least {100 * recall['low']:.3g} % of the relevant documents are not rejected."
    assert recall["detail"] == f"{detail} No audit has been judged yet, so more than that is not known."
    part = (await status(api, "one"))["goal"]["recall"]
    assert (part["estimate"], part["high"]) == (None, 1)
    assert 0 < part["low"] < 1
    for topic in ("one", "two", "deaf"):
        await judge_all(api, topic, 50)
    recall = await pooled()
    assert recall["audits"] > 0
    assert 0 <= recall["low"] <= recall["estimate"] <= recall["high"] <= 1
    lows = [(await status(api, topic))["goal"]["recall"]["low"] for topic in ("one", "two")]
    assert recall["low"] >= min(lows)
    refused(await api.get("/recall", params={"topic": "one"}), 422)


async def test_a_topic_without_audits_says_that_it_cannot_know_its_recall_and_how_to_find_out(api: Api) -> None:
    await api.topic("deaf", goal={"min_recall": 0.9}, audit=0)
    await api.topic("precise", goal={"max_abstain": 0.9}, audit=0)
    await api.topic("asking", goal={"min_recall": 0.9})
    await classify(api, [*oil(20), *grain(30)])
    for topic in ("deaf", "precise", "asking"):
        await api.judge("o1", True, topic)
    how = "the topic does not audit: set `audit`, to .05 for example, and judge the audits that review offers."
    assert how in (await status(api, "deaf"))["goal"]["recall"]["detail"]
    assert "it does not audit: set `audit`" in (await status(api, "precise"))["goal"]["detail"]
    assert "does not audit" not in (await status(api, "asking"))["goal"]["detail"]


async def test_what_is_accepted_before_a_goal_is_certain_says_so_wherever_it_goes(api: Api) -> None:
    for topic, goal in (("best", {"min_precision": 0.8}), ("strict", {"min_precision": 0.8, "mode": "strict"})):
        made = await api.topic(topic, goal=goal, audit=0)
        assert made["goal"] == {"mode": "best"} | goal
    await api.topic("free")
    first = (await classify(api, oil(1, "first-"), topics=["best", "strict", "free"]))[0]["decisions"]
    found = {decision["topic"]: (decision["decision"], decision.get("certain", "absent")) for decision in first}
    assert found == {"best": ("accept", False), "strict": ("abstain", False), "free": ("accept", "absent")}
    assert "a precision of 0.8 is not certain yet" in (await status(api, "best"))["goal"]["detail"].lower()
    await classify(api, [*oil(60), *grain(60)], topics=["best", "strict"])
    for topic in ("best", "strict"):
        await judge_all(api, topic, 60)
    assert (await status(api, "best"))["goal"]["precision"]["state"] == "met"
    later = (await classify(api, oil(1, "later-"), topics=["best", "strict"]))[0]["decisions"]
    assert [(decision["decision"], decision["certain"]) for decision in later] == [("accept", True)] * 2
    entries = await api.sluice.outbox.newest("best", None, 200)
    marks = {entry.document: placed.passed("best").certain for placed in entries for entry in [placed.entry]}
    assert (marks["first-0"], marks["later-0"]) == (False, True)
    (free,) = await api.sluice.outbox.newest("free", None, 10)
    assert free.passed("free").certain is None
