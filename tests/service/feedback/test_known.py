"""Known items test what a topic rejects, and never change it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from models.core import intervals
from service.run.replay import replay
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.refusals import pointers, refused, send
from tests.support.streaming import classify, grain, oil


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        await api.topic()
        yield api


async def know(api: Api, documents: list[Any], topic: str = "crude") -> Any:
    return await api.ok("POST", f"/topics/{topic}/known", {"documents": documents})


async def known(api: Api, **params: Any) -> Any:
    return await api.ok("GET", "/topics/crude/known", params=params)


async def test_known_items_are_tested_as_documents_of_the_stream_would_be(api: Api) -> None:
    documents = [*oil(15), *grain(15)]
    assert await know(api, documents) == {"topic": "crude", "added": 30, "known": 30}
    page = await known(api)
    assert [item["document"] for item in page["items"]] == sorted(d["id"] for d in documents)
    decisions = {d["id"]: await api.decide(d) for d in documents}
    for item in page["items"]:
        decision = decisions[item["document"]]
        assert (item["decision"], item["score"]) == (decision["decision"], pytest.approx(decision["score"], abs=1e-5))
        assert item["title"] == f"Report {item['document']}"
    kept = sum(decision["decision"] != "reject" for decision in decisions.values())
    low, high = intervals.low(kept, 30, 0.95), intervals.high(kept, 30, 0.95)
    assert page["recall"] == {"estimate": kept / 30, "low": low, "high": high, "confidence": 0.95, "known": 30}
    assert 0 < low < kept / 30 < high < 1


async def test_what_was_known_already_or_is_named_twice_is_not_added_again(api: Api) -> None:
    first, second = oil(2)
    assert await know(api, [first, first]) == {"topic": "crude", "added": 1, "known": 1}
    assert await know(api, [first, second]) == {"topic": "crude", "added": 1, "known": 2}
    assert await know(api, [second]) == {"topic": "crude", "added": 0, "known": 2}


async def test_the_decision_is_that_of_the_model_as_it_is_now(api: Api) -> None:
    await know(api, [grain(1)[0]])
    assert (await known(api))["items"][0]["decision"] == "reject"
    for one in grain(8, "more"):
        await api.judge(one, True)
    assert (await known(api))["items"][0]["decision"] != "reject"


async def test_known_items_never_change_the_model(api: Api) -> None:
    await api.judge(OIL | {"id": "oil"}, True)
    was = await api.sluice.store.versions.load_digest("crude")
    versions = (await api.ok("GET", "/topics/crude/versions"))["items"]
    await know(api, grain(10))
    await api.ok("DELETE", "/topics/crude/known/g3")
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"
    assert await api.sluice.store.versions.load_digest("crude") == was
    assert (await api.ok("GET", "/topics/crude/versions"))["items"] == versions


async def test_a_document_that_is_judged_too_does_not_count(api: Api) -> None:
    await classify(api, oil(3))
    await know(api, ["o0", "o1", "o2"])
    assert (await known(api))["recall"]["known"] == 3
    await api.judge("o1", True)
    page = await known(api)
    assert [item["counts"] for item in page["items"]] == [True, False, True]
    assert page["recall"]["known"] == 2


async def test_near_duplicates_count_once_and_not_if_one_is_judged(api: Api) -> None:
    copies = [OIL | {"id": f"copy{i}"} for i in range(4)]
    await know(api, copies)
    assert (await known(api))["recall"]["known"] == 1
    await api.judge(OIL | {"id": "judged"}, True)
    page = await known(api)
    assert page["recall"] is None
    assert len(page["items"]) == 4


async def test_the_same_item_twice_is_one(api: Api) -> None:
    await know(api, [OIL, OIL])
    assert (await know(api, [OIL]))["known"] == 1


async def test_the_list_is_paged_and_recall_is_of_all(api: Api) -> None:
    await know(api, oil(7))
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await known(api, limit=3, **cursor)
        seen += [item["document"] for item in page["items"]]
        assert page["recall"]["known"] == 7
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert seen == [f"o{i}" for i in range(7)]


async def test_an_item_is_taken_off_the_list(api: Api) -> None:
    await know(api, [OIL | {"id": "a/b"}, GRAIN])
    assert (await api.request("DELETE", "/topics/crude/known/a/b")).status_code == 204
    refused(await api.request("DELETE", "/topics/crude/known/a/b"), 404)
    assert len((await known(api))["items"]) == 1


async def test_there_is_room_for_so_many_and_no_more(redis_url: str) -> None:
    async with running_api(redis_url, known_kept=5) as api:
        await api.topic()
        await know(api, oil(4))
        refused(await send(api, "POST", "/topics/crude/known", {"documents": grain(2)}), 413)
        assert len((await known(api))["items"]) == 4
        await know(api, [oil(4)[0], grain(1)[0]])
        assert len((await known(api))["items"]) == 5


async def test_nonsense_is_refused(api: Api) -> None:
    problem = refused(await send(api, "POST", "/topics/crude/known", {"documents": [OIL, "unknown"]}), 404)
    assert pointers(problem) == ["/documents/1"]
    assert (await known(api))["items"] == []
    refused(await send(api, "POST", "/topics/nowhere/known", {"documents": [OIL]}), 404)
    refused(await api.get("/topics/nowhere/known"), 404)
    nonsense: list[Any] = [{}, {"documents": []}, {"documents": [1]}, {"documents": [{"text": ""}]}, {"documents": "d"}]
    for body in nonsense:
        refused(await send(api, "POST", "/topics/crude/known", body), 422)
    refused(await api.get("/topics/crude/known", params={"cursor": ""}), 422)
    too_many = {"documents": [{"text": f"t{i}"} for i in range(1001)]}
    refused(await send(api, "POST", "/topics/crude/known", too_many), 413)


async def test_with_rules_the_answer_says_that_they_were_not_asked(api: Api) -> None:
    await api.ok("POST", "/topics/crude/known", {"documents": [{"id": "k", **GRAIN}]})
    assert (await api.ok("GET", "/topics/crude/known"))["detail"] is None
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "harvest", "reject_if": None}})
    page = await api.ok("GET", "/topics/crude/known")
    assert page["items"][0]["decision"] == "reject"
    assert page["detail"].startswith("Tested with the model alone")
