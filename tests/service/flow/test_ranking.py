"""What a topic let through, highest score first: scores that compare, pages that fit together, and what is left out."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.flow import ranking
from tests.support import reference
from tests.support.api import Api, running_api
from tests.support.refusals import refused
from tests.support.streaming import classify, grain, oil


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def ranked(api: Api, **params: Any) -> Any:
    return (await api.ok("GET", "/topics/crude/ranked", params=params))["items"]


async def pages(api: Api, limit: int) -> list[Any]:
    items: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = await api.ok("GET", "/topics/crude/ranked", params={"limit": limit} | cursor)
        assert len(page["items"]) <= limit
        items += page["items"]
        if page["next"] is None:
            return items
        cursor = {"cursor": page["next"]}


async def test_what_passed_is_there_and_the_highest_score_is_first(api: Api) -> None:
    await api.topic()
    assert await ranked(api) == []
    results = await classify(api, [*oil(30), *grain(10)])
    passed = {result["document"]: verdict for result in results for verdict in result["decisions"]}
    items = await ranked(api)
    assert {item["document"]: (item["decision"], item["score"]) for item in items} == {
        document: (verdict["decision"], verdict["score"]) for document, verdict in passed.items()
    }
    assert [item["score"] for item in items] == sorted((item["score"] for item in items), reverse=True)
    assert all(item["relevant"] is None and item["title"].startswith("Report") for item in items)


async def test_pages_fit_together_across_equal_scores_and_chunks(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "CHUNK", 4)
    await api.topic()
    alike = [{"id": f"t{n}", "text": f"crude oil {word}"} for n, word in enumerate("abcdefgh")]
    await classify(api, [*oil(9), *alike])
    whole = await ranked(api)
    assert len({item["score"] for item in whole}) < len(whole) == 17
    for limit in (1, 5, 17):
        assert await pages(api, limit) == whole


async def test_all_scores_are_those_of_the_model_as_it_is_now(api: Api) -> None:
    await api.topic()
    early, late = oil(6, "early"), oil(6, "late")  # too few for another epoch, which would weigh words otherwise
    await classify(api, early)
    for one in grain(3):
        await api.judge(one, False)
    await api.judge(oil(1, "other")[0], True)
    await classify(api, late)
    items = {item["document"]: item for item in await ranked(api)}
    for one in (*early, *late):
        if one["id"] in items:
            assert items[one["id"]]["score"] == pytest.approx((await api.decide(one))["score"], abs=1e-6)
    versions = {item["version"] for item in items.values()}
    assert versions == {1, 5}
    scores = [item["score"] for item in items.values()]
    assert scores == sorted(scores, reverse=True)


async def test_judged_documents_carry_their_label_or_are_left_out(api: Api) -> None:
    await api.topic()
    await classify(api, oil(5))
    await api.judge("o1", True)
    await api.judge("o2", False)
    labels = {item["document"]: item["relevant"] for item in await ranked(api)}
    assert labels == {"o0": None, "o1": True, "o2": False, "o3": None, "o4": None}
    assert {item["document"] for item in await ranked(api, judged="exclude")} == {"o0", "o3", "o4"}
    await api.ok("DELETE", "/topics/crude/judgements/o1")
    assert {item["document"] for item in await ranked(api, judged="exclude")} == {"o0", "o1", "o3", "o4"}


async def test_the_ranking_is_measured_by_the_grades_that_were_given(api: Api) -> None:
    """Near-duplicates aside: by what each judged document scores without what was learned from it."""
    await api.topic()
    await classify(api, oil(12))
    assert (await api.ok("GET", "/topics/crude/ranked"))["ndcg"] is None
    for n in range(6):
        await api.judge(f"o{n}", n % 4)
    page = await api.ok("GET", "/topics/crude/ranked", params={"limit": 2})
    assert 0 < page["ndcg"]["low"] <= page["ndcg"]["estimate"] <= page["ndcg"]["high"] <= 1
    held_out = await api.sluice.learning.read("crude", lambda state: state.snapshot()[1])
    order = sorted(range(6), key=lambda n: -held_out[f"o{n}"])
    assert page["ndcg"]["estimate"] == pytest.approx(reference.ndcg([n % 4 for n in order]), abs=1e-6)
    without = await api.ok("GET", "/topics/crude/ranked", params={"judged": "exclude"})
    assert without["ndcg"] == page["ndcg"]
    shown = {item["document"]: (item["relevant"], item["grade"]) for item in await ranked(api)}
    assert (shown["o3"], shown["o4"], shown["o9"]) == ((True, 3), (False, 0), (None, None))


async def test_since_leaves_out_what_passed_earlier(api: Api) -> None:
    await api.topic()
    await classify(api, oil(3))
    newest = datetime.fromisoformat(max(item["at"] for item in await ranked(api)))
    assert len(await ranked(api, since=(newest - timedelta(hours=1)).isoformat())) == 3
    assert await ranked(api, since=(newest + timedelta(milliseconds=1)).isoformat()) == []
    naive = (newest + timedelta(milliseconds=1)).replace(tzinfo=None)
    assert await ranked(api, since=naive.isoformat()) == []
    assert len(await ranked(api, since="1901-01-01")) == 3


async def test_a_document_that_passed_twice_is_listed_once(api: Api) -> None:
    await api.topic()
    texts = [f"crude shipments {' '.join(f'w{i}' for i in range(n))}" for n in range(60)]
    decisions = [(await api.decide({"text": text}))["decision"] for text in texts]
    unsure = {"id": "twice", "text": texts[decisions.index("abstain")]}
    (first,) = (await classify(api, [unsure]))[0]["decisions"]
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "shipments", "reject_if": None}})
    (again,) = (await classify(api, [unsure]))[0]["decisions"]
    assert (first["decision"], again["decision"]) == ("abstain", "accept")
    assert len((await api.ok("GET", "/topics/crude/accepted"))["items"]) == 2
    (item,) = await ranked(api)
    assert (item["decision"], item["version"]) == ("accept", again["version"])


async def test_bad_parameters_are_refused_in_words(api: Api) -> None:
    await api.topic()
    await classify(api, oil(1))
    for params in ({"since": "soon"}, {"judged": "maybe"}, {"cursor": "17"}, {"cursor": "nan_1-1"}, {"limit": 0}):
        refused(await api.get("/topics/crude/ranked", params=params), 422)
    answer = await api.get("/topics/crude/ranked", params={"since": "soon"})
    assert "This must be a time such as" in answer.text
    assert await ranked(api, cursor="1e400_1-0") == await ranked(api)
    assert (await api.get("/topics/none/ranked")).status_code == 404
