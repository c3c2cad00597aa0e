"""The public contract: what is asked and what is answered."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.core.names import LEARNER_KINDS
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.refusals import refused


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


# -- topics ------------------------------------------------------------------------------------------------------------


async def test_a_topic_is_made_read_listed_changed_and_deleted(api: Api) -> None:
    made = await api.request("POST", "/topics", json={"name": "Crude oil", "query": "crude oil"})
    assert made.status_code == 201
    assert made.headers["location"] == "/topics/crude-oil"
    assert made.json()["status"]["version"] == 1
    assert made.json()["learner"] == {"kind": "wh", "params": {}}
    read = await api.request("GET", "/topics/crude-oil")
    assert read.json() == made.json()
    assert read.headers["etag"] == made.headers["etag"]
    assert (await api.ok("GET", "/topics"))["items"] == [made.json()]
    changed = await api.ok("PATCH", "/topics/crude-oil", {"name": "Oil"})
    assert (changed["name"], changed["query"], changed["status"]["version"]) == ("Oil", "crude oil", 2)
    assert (await api.request("DELETE", "/topics/crude-oil")).status_code == 204
    assert (await api.request("GET", "/topics/crude-oil")).status_code == 404
    assert (await api.request("DELETE", "/topics/crude-oil")).status_code == 404
    assert (await api.ok("GET", "/topics"))["items"] == []


async def test_an_id_is_taken_once(api: Api) -> None:
    await api.topic()
    again = await api.request("POST", "/topics", json={"id": "crude"})
    assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")


async def test_a_deleted_topic_leaves_nothing_to_its_successor(api: Api) -> None:
    await api.topic()
    await api.judge(OIL, True)
    await api.request("DELETE", "/topics/crude")
    assert (await api.topic())["status"]["judged"] == {"relevant": 0, "irrelevant": 0}
    assert (await api.ok("GET", "/topics/crude/judgements"))["items"] == []
    assert len((await api.ok("GET", "/topics/crude/versions"))["items"]) == 1


async def test_topics_are_paged(api: Api) -> None:
    names = [f"t{i:02}" for i in range(7)]
    for name in reversed(names):
        await api.topic(name)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await api.ok("GET", "/topics", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))
        seen += [topic["id"] for topic in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == names


async def test_a_change_can_insist_on_what_was_read(api: Api) -> None:
    await api.topic()
    tag = (await api.request("GET", "/topics/crude")).headers["etag"]
    assert (await api.request("PATCH", "/topics/crude", json={"name": "a"}, headers={"If-Match": tag})).is_success
    late = await api.request("PATCH", "/topics/crude", json={"name": "b"}, headers={"If-Match": tag})
    assert late.status_code == 412
    assert (await api.request("DELETE", "/topics/crude", headers={"If-Match": tag})).status_code == 412
    newest = await api.request("GET", "/topics/crude")
    assert newest.json()["name"] == "a"
    assert (await api.request("DELETE", "/topics/crude", headers={"If-Match": newest.headers["etag"]})).is_success


async def test_a_change_that_changes_nothing_makes_no_version(api: Api) -> None:
    made = await api.topic(name="Oil")
    assert await api.ok("PATCH", "/topics/crude", {"name": "Oil"}) == made


async def test_another_learner_refolds_the_log(api: Api) -> None:
    """The model is what it would have been with that learner from the start."""
    for name, learner in (("crude", {"kind": "wh"}), ("other", {"kind": "eg"})):
        await api.topic(name, learner=learner)
        await api.judge(OIL, True, name)
        await api.judge(GRAIN, False, name)
    changed = await api.ok("PATCH", "/topics/crude", {"learner": {"kind": "eg"}})
    assert changed["learner"]["kind"] == "eg"
    assert changed["status"]["judged"] == {"relevant": 1, "irrelevant": 1}
    assert (await api.decide(OIL))["score"] == (await api.decide(OIL, "other"))["score"]


@pytest.mark.parametrize("kind", LEARNER_KINDS)
async def test_every_learner_serves_and_learns(api: Api, kind: str) -> None:
    """It begins with the query and ends with the reader, who wants the opposite."""
    await api.topic(learner={"kind": kind})
    assert (await api.decide(OIL))["score"] > (await api.decide(GRAIN))["score"]
    for i in range(5):
        await api.judge(OIL | {"id": f"o{i}"}, False)
        await api.judge(GRAIN | {"id": f"g{i}"}, True)
    assert (await api.decide(OIL))["score"] < (await api.decide(GRAIN))["score"]


# -- documents and judgements ------------------------------------------------------------------------------------------


async def test_a_query_alone_accepts_what_is_plainly_about_it(api: Api) -> None:
    await api.topic()
    assert (await api.decide(OIL))["decision"] == "accept"
    assert (await api.decide(GRAIN))["decision"] == "reject"


async def test_ten_judgements_later_decisions_follow_the_judgements(api: Api) -> None:
    """The reader wants harvests, whatever the query was."""
    await api.topic()
    wanted = [GRAIN | {"id": f"g{i}", "title": f"Harvest {i}"} for i in range(5)]
    unwanted = [OIL | {"id": f"o{i}", "title": f"Meeting {i}"} for i in range(5)]
    for good, bad in zip(wanted, unwanted, strict=True):
        await api.judge(good, True)
        await api.judge(bad, False)
    assert {(await api.decide(document))["decision"] for document in wanted} == {"accept"}
    assert {(await api.decide(document))["decision"] for document in unwanted} == {"reject"}
    assert (await api.decide(GRAIN))["decision"] == "accept"
    assert (await api.decide(OIL))["decision"] != "accept"


async def test_rejections_are_left_out_unless_asked_for(api: Api) -> None:
    await api.topic()
    await api.topic("sport", query="football match goal")
    body: dict[str, Any] = {"documents": [OIL], "store": False}
    (result,) = (await api.ok("POST", "/classify", body))["results"]
    assert [d["topic"] for d in result["decisions"]] == ["crude"]
    (result,) = (await api.ok("POST", "/classify", body | {"include": "all"}))["results"]
    assert [(d["topic"], d["decision"]) for d in result["decisions"]] == [("crude", "accept"), ("sport", "reject")]
    (result,) = (await api.ok("POST", "/classify", body | {"topics": ["sport"]}))["results"]
    assert [(d["topic"], d["decision"]) for d in result["decisions"]] == [("sport", "reject")]


async def test_a_flip_names_the_terms_without_which_it_would_be_decided_otherwise(api: Api) -> None:
    """By deciding again: the document without these words is decided so, and with any one of them as it was."""
    await api.topic()
    text = "Crude output of OPEC fell while the harvest and the weather were as usual."
    verdict = await api.decide({"text": text}, explain=True)
    flip = verdict["flip"]
    assert verdict["decision"] == "accept"
    assert flip["with"] == []
    assert set(flip["without"]) <= {part["term"] for part in verdict["explanation"]}

    async def without(gone: list[str]) -> str:
        left = " ".join(word for word in text.split() if word not in gone)
        return str((await api.decide({"text": left}))["decision"])

    assert await without(flip["without"]) == flip["decision"] != "accept"
    for kept in flip["without"]:
        assert await without([word for word in flip["without"] if word != kept]) == "accept"


async def test_a_rejection_is_flipped_by_what_it_has_or_by_what_it_lacks(api: Api) -> None:
    await api.topic(query="crude opec")
    lacking = (await api.decide({"text": "Rain fell on Kansas"}, explain=True))["flip"]
    assert (lacking["without"], lacking["with"]) == ([], ["crude"])
    with_it = await api.decide({"text": "Rain fell on Kansas crude"})
    assert with_it["decision"] == lacking["decision"] != "reject"
    for n in range(6):
        await api.judge({"id": f"s{n}", "text": f"crude sunflower oil {n}"}, False)
        await api.judge({"id": f"o{n}", "text": f"crude opec {n}"}, True)
    spoilt = await api.decide({"text": "crude sunflower sunflower"}, explain=True)
    assert (spoilt["decision"], spoilt["flip"]["without"]) == ("reject", ["sunflower"])
    assert (await api.decide({"text": "crude"}))["decision"] == spoilt["flip"]["decision"]


@pytest.mark.parametrize("kind", LEARNER_KINDS)
async def test_whatever_learns_says_what_would_flip_it(api: Api, kind: str) -> None:
    await api.topic(learner={"kind": kind})
    for i in range(5):
        await api.judge(OIL | {"id": f"o{i}"}, True)
        await api.judge(GRAIN | {"id": f"g{i}"}, False)
    text = "opec agreed to cut output of crude in kansas"
    verdict = await api.decide({"text": text}, explain=True)
    gone = verdict["flip"]["without"]
    left = " ".join(word for word in text.split() if word not in gone)
    assert (await api.decide({"text": left}))["decision"] == verdict["flip"]["decision"] != verdict["decision"]


async def test_nothing_flips_what_a_rule_decides_or_what_no_word_can_change(api: Api) -> None:
    await api.topic(rules={"accept_if": "opec", "reject_if": None})
    assert (await api.decide({"text": "opec crude"}, explain=True))["flip"] is None
    await api.topic("mute", query="")
    assert (await api.decide({"text": "opec crude"}, "mute", explain=True))["flip"] is None
    assert "flip" not in await api.decide({"text": "opec crude"}, "mute")


async def test_an_explanation_adds_up_to_the_score_in_the_words_of_the_text(api: Api) -> None:
    await api.topic()
    await api.judge(GRAIN, False)
    verdict = await api.decide({"text": "OPEC's Crude-OIL, and wheat from Kansas."}, explain=True)
    words = {part["term"]: part["contribution"] for part in verdict["explanation"]}
    assert {"OPEC", "Crude", "OIL", "wheat"} <= set(words)
    assert words["OPEC"] > 0 > words["wheat"]
    assert sum(words.values()) == pytest.approx(verdict["score"], abs=1e-5)


async def test_terms_of_equal_strength_stand_in_the_order_of_the_text(api: Api) -> None:
    await api.topic(query="zebra apple mango")
    verdict = await api.decide({"text": "Mango, zebra, apple."}, explain=True)
    assert [part["term"] for part in verdict["explanation"]][:3] == ["Mango", "zebra", "apple"]


async def test_of_a_very_long_document_the_log_keeps_the_weightiest_terms(api: Api) -> None:
    await api.topic()
    text = " ".join(f"word{i}" for i in range(5000)) + " opec" * 50
    assert (await api.judge({"id": "long", "text": text}, True))["status"] == "learned"
    words = await api.sluice.learning.read("crude", lambda state: set(state.terms().values()))
    assert "opec" in words
    assert 2000 <= len(words) <= 2006


async def test_a_rule_overrules_the_model_and_says_so(api: Api) -> None:
    await api.topic(rules={"accept_if": "title:harvest OR refinery", "reject_if": '"crude oil" AND NOT kansas'})
    verdicts = {name: await api.decide(document) for name, document in (("oil", OIL), ("grain", GRAIN))}
    assert (verdicts["oil"]["decision"], verdicts["oil"]["decided_by"]) == ("reject", "reject_if")
    assert (verdicts["grain"]["decision"], verdicts["grain"]["decided_by"]) == ("accept", "accept_if")
    assert verdicts["oil"]["score"] > verdicts["grain"]["score"]
    results = (await api.ok("POST", "/classify", {"documents": [OIL, GRAIN], "store": False}))["results"]
    assert [[d["decided_by"] for d in result["decisions"]] for result in results] == [[], ["accept_if"]]
    await api.ok("PATCH", "/topics/crude", {"rules": {}})
    assert (await api.decide(OIL))["decided_by"] == "model"


async def test_a_rule_that_cannot_be_read_is_refused_and_says_where(api: Api) -> None:
    answer = await api.request("POST", "/topics", json={"id": "t", "rules": {"reject_if": "sport AND (NOT"}})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/rules/reject_if"
    assert error["detail"] == "A word is expected after NOT (at character 15)."
    assert (await api.request("GET", "/topics/t")).status_code == 404


async def test_a_document_sent_twice_has_the_same_id(api: Api) -> None:
    await api.topic()
    first, second = [await api.ok("POST", "/classify", {"documents": [OIL]}) for _ in range(2)]
    assert first == second


async def test_a_remembered_document_is_judged_by_id(api: Api) -> None:
    await api.topic()
    await api.ok("POST", "/classify", {"documents": [OIL | {"id": "d1"}]})
    learned = await api.judge("d1", False)
    assert learned["status"] == "learned"
    assert learned["version"] == 2
    assert learned["before"]["decision"] == "accept"
    assert (await api.decide(OIL))["version"] == 2
    assert (await api.decide(OIL))["score"] < learned["before"]["score"]


async def test_a_document_that_was_not_stored_must_be_sent(api: Api) -> None:
    await api.topic()
    await api.ok("POST", "/classify", {"documents": [OIL | {"id": "d1"}], "store": False})
    answer = await api.request("POST", "/feedback", json={"topic": "crude", "document": "d1", "relevant": True})
    assert answer.status_code == 404
    assert "text" in answer.json()["detail"]


async def test_the_same_judgement_again_changes_nothing(api: Api) -> None:
    await api.topic()
    first = await api.judge(OIL, True)
    again = await api.judge(OIL, True)
    assert (again["status"], again["version"]) == ("known", first["version"])


async def test_a_changed_label_gives_the_model_it_would_have_given_from_the_start(api: Api) -> None:
    labels = [("a", OIL, True), ("b", GRAIN, False), ("c", {"text": "oil spill at sea"}, True)]
    await api.topic("right")
    await api.topic("wrong")
    for name, document, relevant in labels:
        await api.judge(document | {"id": name}, relevant, "right")
        await api.judge(document | {"id": name}, not relevant, "wrong")
    for name, _, relevant in labels:
        assert (await api.judge(name, relevant, "wrong"))["status"] == "corrected"
    right, wrong = [await api.ok("GET", f"/topics/{t}/model", params={"format": "export"}) for t in ("right", "wrong")]
    assert right == wrong


async def test_a_withdrawn_judgement_never_was(api: Api) -> None:
    await api.topic()
    before = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.judge(OIL | {"id": "a/b c"}, False)
    gone = await api.ok("DELETE", "/topics/crude/judgements/a/b%20c")
    assert (gone["status"], gone["version"]) == ("withdrawn", 3)
    assert await api.ok("GET", "/topics/crude/model", params={"format": "export"}) == before
    assert (await api.request("DELETE", "/topics/crude/judgements/a/b%20c")).status_code == 404


async def test_judgements_are_listed_newest_first_with_who_and_when(api: Api) -> None:
    await api.topic()
    for i in range(5):
        body = {"topic": "crude", "document": OIL | {"id": f"d{i}"}, "relevant": i % 2 == 0, "by": "ann"}
        await api.ok("POST", "/feedback", body)
    page = await api.ok("GET", "/topics/crude/judgements", params={"limit": 2})
    assert [(j["document"], j["relevant"], j["by"], j["title"]) for j in page["items"]] == [
        ("d4", True, "ann", "OPEC meets"),
        ("d3", False, "ann", "OPEC meets"),
    ]
    rest = await api.ok("GET", "/topics/crude/judgements", params={"cursor": page["next"]})
    assert [j["document"] for j in rest["items"]] == ["d2", "d1", "d0"]


async def test_a_list_of_judgements_is_answered_one_by_one(api: Api) -> None:
    await api.topic()
    given = [
        {"topic": "crude", "document": OIL, "relevant": True},
        {"topic": "nowhere", "document": OIL, "relevant": True},
        {"topic": "crude", "document": "unknown", "relevant": True},
        {"topic": "crude", "document": GRAIN, "relevant": False},
    ]
    results = (await api.ok("POST", "/feedback", {"judgements": given}))["results"]
    assert [r["status"] for r in results] == ["learned", 404, 404, "learned"]
    assert (await api.ok("GET", "/topics/crude"))["status"]["judged"] == {"relevant": 1, "irrelevant": 1}


async def test_a_document_that_came_with_a_judgement_is_known_to_those_after_it(api: Api) -> None:
    await api.topic()
    await api.topic("grain")
    given = [
        {"topic": "crude", "document": {"id": "x", "text": "opec output"}, "relevant": True},
        {"topic": "crude", "document": "x", "relevant": False},
        {"topic": "grain", "document": "x", "relevant": False},
    ]
    results = (await api.ok("POST", "/feedback", {"judgements": given}))["results"]
    assert [one["status"] for one in results] == ["learned", "corrected", 404]


async def test_a_grade_says_how_relevant_a_document_is(api: Api) -> None:
    """Decisions are learned from whether it is: another grade is a correction, and the model stays the same."""
    await api.topic()
    assert (await api.judge(OIL | {"id": "o"}, True)).get("grade", "none") == "none"
    await api.judge(GRAIN | {"id": "g"}, 0)
    before = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    graded = await api.judge("o", 2)
    assert (graded["status"], graded["relevant"], graded["grade"], graded["version"]) == ("corrected", True, 2, 4)
    assert await api.ok("GET", "/topics/crude/model", params={"format": "export"}) == before
    assert (await api.judge("o", 2))["status"] == "known"
    assert (await api.judge("o", True))["status"] == "known"  # that it is relevant is no news
    assert (await api.judge("g", False))["status"] == "known"
    items = (await api.ok("GET", "/topics/crude/judgements"))["items"]
    assert [(one["document"], one["relevant"], one["grade"], one["version"]) for one in items] == [
        ("o", True, 2, 4),
        ("g", False, 0, 3),
    ]
    (page,) = (await api.ok("GET", "/topics/crude/judgements", params={"limit": 1}))["items"]
    assert page["document"] == "o"
    assert (await api.judge("o", 0))["status"] == "corrected"
    assert (await api.ok("GET", "/topics/crude"))["status"]["judged"] == {"relevant": 0, "irrelevant": 2}
    await api.ok("POST", "/topics/crude/versions/4/restore")
    assert (await api.ok("GET", "/topics/crude/judgements"))["items"] == items
    assert (await api.judge("o", 2))["status"] == "known"
    assert (await api.judge("o", 1))["status"] == "corrected"
    await api.ok("DELETE", "/topics/crude/judgements/o")
    assert [one["document"] for one in (await api.ok("GET", "/topics/crude/judgements"))["items"]] == ["g"]


@pytest.mark.parametrize("grade", [4, -1, 1.5, 1.0, "2", None, [2], 10**30])
async def test_what_is_no_grade_is_refused_in_words(api: Api, grade: Any) -> None:
    await api.topic()
    answer = await api.post("/feedback", json={"topic": "crude", "document": OIL, "relevant": grade})
    problem = refused(answer, 422)
    assert problem["errors"] == [
        {"pointer": "/relevant", "detail": "This must be true, false, or a grade: 0, 1, 2 or 3."}
    ]


async def test_judgements_that_arrive_together_are_all_learned(api: Api) -> None:
    await api.topic()
    await asyncio.gather(*(api.judge(OIL | {"id": f"d{i}"}, i % 3 > 0) for i in range(60)))
    assert (await api.ok("GET", "/topics/crude"))["status"]["judged"] == {"relevant": 40, "irrelevant": 20}


# -- versions and models -----------------------------------------------------------------------------------------------


async def test_an_old_version_is_served_again_as_a_new_one(api: Api) -> None:
    await api.topic()
    await api.judge(OIL, True)
    was = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    for i in range(5):
        await api.judge(GRAIN | {"id": f"d{i}"}, True)
    await api.judge({"id": "match", "text": "the home team won the football match"}, False)
    assert (await api.decide(GRAIN))["decision"] == "accept"
    restored = await api.ok("POST", "/topics/crude/versions/2/restore")
    assert restored["status"]["version"] == 9
    assert restored["status"]["judged"] == {"relevant": 1, "irrelevant": 0}
    assert await api.ok("GET", "/topics/crude/model", params={"format": "export"}) == was
    assert (await api.judge(GRAIN | {"id": "d0"}, True))["status"] == "learned"
    versions = (await api.ok("GET", "/topics/crude/versions"))["items"]
    assert [v["cause"] for v in versions[:3]] == ["feedback", "restore", "feedback"]
    assert (await api.request("POST", "/topics/crude/versions/99/restore")).status_code == 404


async def test_a_model_goes_out_and_comes_back(api: Api) -> None:
    await api.topic()
    await api.judge(OIL, True)
    await api.judge(GRAIN, False)
    exported = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.topic("copy", query="")
    await api.ok("PUT", "/topics/copy/model", exported)
    for document in (OIL, GRAIN, {"text": "barrels of wheat"}):
        one, other = await api.decide(document), await api.decide(document, "copy")
        assert (one["score"], one["decision"]) == (other["score"], other["decision"])
    assert await api.ok("GET", "/topics/copy/model", params={"format": "export"}) == exported  # words and all
    assert (await api.judge(GRAIN, True, "copy"))["status"] == "learned"
    assert (await api.decide(GRAIN, "copy"))["score"] > (await api.decide(GRAIN))["score"]


async def test_the_model_of_a_topic_that_knows_nothing_goes_out_and_comes_back(api: Api) -> None:
    """Its thresholds are as far away as numbers go."""
    await api.topic(query="")
    exported = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.ok("PUT", "/topics/crude/model", exported)
    assert await api.ok("GET", "/topics/crude/model", params={"format": "export"}) == exported
    assert (await api.judge(OIL, True))["status"] == "learned"


async def test_a_model_shows_its_strongest_words(api: Api) -> None:
    await api.topic()
    await api.judge(GRAIN, False)
    model = await api.ok("GET", "/topics/crude/model")
    assert {"crude", "opec"} <= {term["term"] for term in model["terms"]["for"]}
    assert {"wheat", "maize"} <= {term["term"] for term in model["terms"]["against"]}


# -- streams -----------------------------------------------------------------------------------------------------------


async def test_lines_in_give_lines_out_in_order_and_errors_stand_on_their_line(api: Api) -> None:
    await api.topic()
    lines = [json.dumps(OIL | {"id": f"d{i}"}) for i in range(600)]
    lines[7] = '{"text": 1}'
    lines[300] = "{not json"
    answer = await api.post(
        "/classify",
        content="\n".join(lines),
        headers={"content-type": "application/x-ndjson"},
        params={"topics": ["crude"]},
    )
    out = [json.loads(line) for line in answer.text.splitlines()]
    assert len(out) == 600
    assert (out[7]["status"], out[300]["status"]) == (422, 400)
    assert [o["document"] for i, o in enumerate(out) if i not in (7, 300)] == [
        f"d{i}" for i in range(600) if i not in (7, 300)
    ]
    assert (await api.judge("d599", True))["status"] == "learned"


async def test_judgements_come_as_lines_too(api: Api) -> None:
    await api.topic()
    lines = [json.dumps({"topic": "crude", "document": OIL | {"id": f"d{i}"}, "relevant": True}) for i in range(10)]
    lines.insert(3, '{"topic": "nowhere", "document": "x", "relevant": true}')
    answer = await api.post("/feedback", content="\n".join(lines), headers={"content-type": "application/x-ndjson"})
    assert [json.loads(line)["status"] for line in answer.text.splitlines()] == ["learned"] * 3 + [404] + [
        "learned"
    ] * 7


# -- health ------------------------------------------------------------------------------------------------------------


async def test_health_and_readiness(api: Api) -> None:
    await api.topic()
    assert await api.ok("GET", "/healthz") == {"status": "ok", "topics": None}
    assert await api.ok("GET", "/readyz") == {"status": "ok", "topics": 1}
