"""The ranked view in the order that feedback teaches: off by default, from enough judgements, page by page."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from service.flow import ranking
from service.flow.ranking import Basis
from service.topics.decisions.order import Judgements
from tests.support import reference
from tests.support.api import Api, running_api
from tests.support.job_workers import run_job, running_workers
from tests.support.refusals import refused
from tests.support.streaming import classify, grain, oil

LEARNED = {"kind": "pairwise", "C": 1.0}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


def wired(n: int, prefix: str = "o") -> list[dict[str, Any]]:
    """Documents about oil, every third from a source that people like."""
    return [one | {"source": "wire" if i % 3 == 0 else f"blog {i % 2}"} for i, one in enumerate(oil(n, prefix))]


async def judged(api: Api, n: int, **fields: Any) -> None:
    """So many documents, those of the good source of grade 3, of another one of grade 1; and as many unjudged ones."""
    await api.topic(rules={"accept_if": "report"}, **fields)
    await classify(api, [*wired(n), *wired(n, "u")])
    grades = [{"topic": "crude", "document": f"o{i}", "relevant": 3 if i % 3 == 0 else i % 2} for i in range(n)]
    await api.ok("POST", "/feedback", {"judgements": grades})


async def page(api: Api, **params: Any) -> Any:
    return await api.ok("GET", "/topics/crude/ranked", params={"limit": 500} | params)


async def test_it_is_off_by_default_and_waits_for_judgements(api: Api) -> None:
    assert "ranking" not in await api.topic()
    await classify(api, wired(6))
    plain = await page(api)
    assert plain["ranked_by"] == "score"
    assert all(item["rank"] is None for item in plain["items"])
    changed = await api.ok("PATCH", "/topics/crude", {"ranking": LEARNED})
    assert changed["ranking"] == LEARNED
    assert [item["document"] for item in (await page(api))["items"]] == [item["document"] for item in plain["items"]]
    assert (await page(api))["ranked_by"] == "score"
    assert "ranking" not in await api.ok("PATCH", "/topics/crude", {"ranking": None})


async def test_what_people_prefer_comes_first(api: Api) -> None:
    await judged(api, 45)
    plain = await page(api)
    version = (await api.ok("GET", "/topics/crude/model"))["version"]
    model = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.ok("PATCH", "/topics/crude", {"ranking": LEARNED})
    learned = await page(api, judged="exclude")
    assert learned["ranked_by"] == "feedback"
    ranks = [item["rank"] for item in learned["items"]]
    assert ranks == sorted(ranks, reverse=True)
    assert len(ranks) == 45
    assert [item["source"] for item in learned["items"][:10]].count("wire") >= 8
    assert {item["document"]: item["score"] for item in (await page(api))["items"]} == {
        item["document"]: item["score"] for item in plain["items"]
    }
    assert learned["ndcg"]["estimate"] > plain["ndcg"]["estimate"]
    now = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    assert (now["terms"], now["bias"]) == (model["terms"], model["bias"])  # cuts may follow the stream
    assert (await api.ok("GET", "/topics/crude/model"))["version"] == version + 1  # the setting's own event
    await api.ok("POST", "/topics/crude/versions/1/restore")
    assert (await api.ok("GET", "/topics/crude"))["ranking"] == LEARNED  # as all that no model depends on


async def test_pages_of_a_learned_ranking_fit_together_while_documents_arrive(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "CHUNK", 7)
    await judged(api, 20, ranking=LEARNED)
    whole = (await page(api))["items"]
    items, n = [], 0
    cursor: dict[str, str] = {}
    while True:
        part = await page(api, limit=6, **cursor)
        items += part["items"]
        if part["next"] is None:
            break
        cursor, n = {"cursor": part["next"]}, n + 1
        await classify(api, wired(3, f"new{n}-"))
        await classify(api, [{"id": "u3", "title": "Report u3", "text": f"opec again {n}"}])
    assert items == whole
    assert len((await page(api))["items"]) > len(whole)


async def test_pages_by_score_fit_together_while_documents_arrive(api: Api) -> None:
    await api.topic()
    await classify(api, oil(20))
    whole = (await page(api))["items"]
    items: list[Any] = []
    cursor: dict[str, str] = {}
    for n in range(4):
        part = await page(api, limit=5, **cursor)
        items += part["items"]
        cursor = {"cursor": part["next"]}
        await classify(api, oil(2, f"new{n}-"))
    assert (items, part["next"]) == (whole, None)


@pytest.mark.parametrize("learned", [None, LEARNED])
async def test_pages_are_of_one_ranking_while_the_topic_learns_and_words_are_counted(
    api: Api, learned: dict[str, Any] | None
) -> None:
    await judged(api, 30, ranking=learned)
    whole = (await page(api, judged="exclude"))["items"]
    items: list[Any] = []
    cursor: dict[str, str] = {}
    for n in range(5):
        part = await page(api, judged="exclude", limit=6, **cursor)
        items += part["items"]
        cursor = {"cursor": part["next"]}
        await classify(api, [*wired(2, f"new{n}-"), *grain(40, f"g{n}-")])
        await api.sluice.epochs.publish()
        for i in range(3):
            await api.judge({"id": f"given{n}-{i}", "text": f"opec quota {n} {i}"}, i)
        if n == 2:
            await api.ok("PATCH", "/topics/crude", {"query": "wheat harvest"})
    assert (items, part["next"]) == (whole, None)
    assert (await page(api, judged="exclude"))["items"] != whole


async def test_since_leaves_out_and_does_not_unlearn(api: Api) -> None:
    await judged(api, 30, ranking=LEARNED)
    whole = await page(api)
    newest = max(item["at"] for item in whole["items"])
    late = await page(api, since=newest)
    assert late["ranked_by"] == "feedback"
    assert late["items"] == [item for item in whole["items"] if item["at"] >= newest]


async def test_its_ndcg_is_of_ranks_without_the_judgement_itself(api: Api) -> None:
    await judged(api, 30, ranking=LEARNED)
    judgements = await api.sluice.learning.read("crude", Judgements.of)
    published = await api.sluice.topics.find("crude")
    basis = Basis(published, judgements, api.sluice.epochs.current)
    listing = await api.sluice.ranking._listing(basis, 0, None)
    order = sorted(judgements.documents, key=lambda document: -listing.held_out[document])
    grades = [judgements.documents[document].label.grade or 0 for document in order]
    assert (await page(api))["ndcg"]["estimate"] == pytest.approx(reference.ndcg(grades), abs=1e-6)


async def test_bad_settings_are_refused(api: Api) -> None:
    await api.topic()
    for wrong in ("pairwise", {}, {"kind": "listwise"}, LEARNED | {"C": 0}, LEARNED | {"C": "1"}, LEARNED | {"D": 1}):
        refused(await api.patch("/topics/crude", json={"ranking": wrong}), 422)


@pytest.fixture
def worker(redis_url: str) -> Iterator[None]:
    with running_workers(redis_url):
        yield


async def test_both_orders_are_compared_by_a_job(api: Api, worker: None) -> None:
    await judged(api, 45)
    request = {"kind": "compare", "topic": "crude", "methods": [{"method": "centroid"}]}
    compared = (await run_job(api, **request))["result"]["ranking"]
    assert compared["judged"] == 45
    assert compared["by_feedback"]["estimate"] > compared["by_score"]["estimate"]
    gain = compared["by_feedback"]["estimate"] - compared["by_score"]["estimate"]
    assert compared["gain"]["estimate"] == pytest.approx(gain, abs=1e-3)
    assert compared["detail"] in ("Better.", "The difference may be chance.")
    await api.topic("young", query="wheat")
    for i, one in enumerate(oil(24, "y")):  # nothing has passed, so there is nothing to order
        await api.judge(one, i % 2 == 0, "young")
    request = {"kind": "compare", "topic": "young", "methods": [{"method": "centroid"}]}
    assert (await run_job(api, **request))["result"]["ranking"] is None
