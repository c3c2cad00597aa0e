"""Committees through the public contract: they vote, explain themselves, are remembered, exported and brought back."""

import random
from typing import Any

import pytest

from models.core.vectors import Bag
from models.core.views import view
from models.goals.thresholds import NEVER
from models.online.committee import decide
from models.text.analysis import bags
from service.topics.published import Base, PublishedModel
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.readers import GRAIN_WORDS, OIL_WORDS

VOTING: list[dict[str, Any]] = [
    {"combine": "unanimous", "k": 3},
    {"combine": "vote", "k": 3, "method": "resample_a"},
    {"combine": "weighted", "k": 4, "method": "resample_b"},
    {"combine": "unanimous", "k": None, "max_loss": 0.5},
    {"k": 4, "accept_votes": 3, "reject_votes": 2, "member_loss": 0.1},
    {"of": "svm", "k": 2},
    {"of": "centroid", "k": 3, "combine": "vote", "params": {"by": "cosine"}},
]


def documents(n: int, seed: int = 1) -> list[tuple[dict[str, str], bool]]:
    """Every second document about oil, the others about grain, with a word or two of the other."""
    rng = random.Random(seed)
    made = []
    for i in range(n):
        mine, other = (OIL_WORDS, GRAIN_WORDS) if i % 2 == 0 else (GRAIN_WORDS, OIL_WORDS)
        words = rng.sample(mine, 5) + rng.sample(other, rng.choice((0, 1, 2)))
        made.append(({"id": f"d{seed}-{i}", "text": " ".join(words)}, i % 2 == 0))
    return made


async def taught(
    api: Api, params: dict[str, Any], n: int = 24, topic: str = "crude", **settings: Any
) -> PublishedModel:
    await api.topic(topic, learner={"kind": "committee", "params": params}, **settings)
    for document, relevant in documents(n):
        await api.judge(document, relevant, topic)
    return api.sluice.registry.get(topic)


async def decided(api: Api, topic: str = "crude", **options: Any) -> list[Any]:
    body = {"documents": [d for d, _ in documents(30, seed=2)], "topics": [topic], "store": False} | options
    return [result["decisions"][0] for result in (await api.ok("POST", "/classify", body))["results"]]


@pytest.mark.parametrize("params", [*VOTING, {"combine": "mean"}], ids=str)
async def test_a_committee_decides_explains_and_its_parts_add_up(redis_url: str, params: dict[str, Any]) -> None:
    async with running_api(redis_url) as api:
        await taught(api, params)
        verdicts = await decided(api, explain=True)
        judged = [(v["decision"], r) for v, (_, r) in zip(verdicts, documents(30, seed=2), strict=True)]
        assert sum(pair in (("accept", True), ("reject", False)) for pair in judged) > 10
        assert sum(pair in (("accept", False), ("reject", True)) for pair in judged) <= 3
        for verdict in verdicts:
            total = sum(part["contribution"] for part in verdict["explanation"])
            assert total == pytest.approx(verdict["score"], abs=1e-4)


@pytest.mark.parametrize("goal", [{}, {"min_precision": 0.8, "mode": "strict"}], ids=str)
@pytest.mark.parametrize("params", VOTING, ids=str)
async def test_what_is_decided_is_the_vote_of_the_members(
    redis_url: str, params: dict[str, Any], goal: dict[str, float]
) -> None:
    """With a goal nothing is accepted yet: what a user brought along is no evidence."""
    async with running_api(redis_url) as api:
        published = await taught(api, params, goal=goal)
        assert published.model.accept_above == (NEVER if goal else 0)
        committee = published.model.committee
        assert committee is not None
        assert committee.rule is not None
        idf = api.sluice.epochs.current.frequencies.idf
        for verdict, (document, _) in zip(await decided(api), documents(30, seed=2), strict=True):
            features, counts = bags([("", document["text"])], api.sluice.registry.analysis)[0]
            x = view(published.model.linear.view, Bag(features, counts, idf(features)))
            scores = [member.score(x) for member in committee.members]
            decision = decide(scores, published.model.reject_below, published.model.accept_above, committee.rule)
            assert verdict["decision"] == {1: "accept", 0: "abstain", -1: "reject"}[decision]
            assert verdict["score"] == pytest.approx(sum(scores) / len(scores), abs=1e-4)


async def test_what_was_decided_before_a_judgement_is_what_is_answered_without_one(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, VOTING[0])
        for document, relevant in documents(12, seed=3):
            verdict = await api.decide(document)
            before = (await api.judge(document, relevant))["before"]
            assert before["decision"] == verdict["decision"]
            assert before["score"] == pytest.approx(verdict["score"], abs=1e-4)


@pytest.mark.parametrize("goal", [{}, {"min_precision": 0.8}], ids=str)
async def test_unasked_only_what_the_committee_does_not_reject_is_answered(
    redis_url: str, goal: dict[str, float]
) -> None:
    async with running_api(redis_url) as api:
        await taught(api, {"combine": "vote", "k": 3}, goal=goal)
        await api.topic("plain")
        requested = await decided(api)
        body = {"documents": [d for d, _ in documents(30, seed=2)], "store": False}
        results = (await api.ok("POST", "/classify", body))["results"]
        unrequested = [[v for v in result["decisions"] if v["topic"] == "crude"] for result in results]
        assert [row[0] if row else None for row in unrequested] == [
            v if v["decision"] != "reject" else None for v in requested
        ]


async def test_a_restart_serves_the_same_committee(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, VOTING[0])
        before = await decided(api)
    async with running_api(redis_url) as api:
        assert await decided(api) == before


@pytest.mark.parametrize("params", [*VOTING, {"combine": "mean"}], ids=str)
async def test_a_model_in_bytes_is_the_model(redis_url: str, params: dict[str, Any]) -> None:
    async with running_api(redis_url) as api:
        blob = Base((await taught(api, params)).model, {"d1": 0.25}).to_bytes()
        assert Base.from_bytes(blob).to_bytes() == blob


async def test_an_exported_committee_decides_alike_elsewhere(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, VOTING[0])
        exported = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
        assert len(exported["committee"]["members"]) == 3
        await api.topic("copy")
        await api.ok("PUT", "/topics/copy/model", exported)
        mine, copies = await decided(api), await decided(api, "copy")
        assert [(v["decision"], v["score"]) for v in mine] == [(v["decision"], v["score"]) for v in copies]
        again = await api.ok("GET", "/topics/copy/model", params={"format": "export"})
        names = ("weights", "more_than")  # its words are not known there, so the terms have other names
        assert [again["committee"][name] for name in names] == [exported["committee"][name] for name in names]


async def test_a_committee_whose_weights_do_not_fit_its_members_is_refused(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, VOTING[0], n=4)
        exported = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
        for weights in ([0.5, 0.5], [0.5, 0.5, 0.5], [-1, 1, 1]):
            broken = exported | {"committee": exported["committee"] | {"weights": weights}}
            assert (await api.request("PUT", "/topics/crude/model", json=broken)).status_code == 422


async def test_the_model_says_how_many_members_there_are_and_what_they_would_lose(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, VOTING[3])
        committee = (await api.ok("GET", "/topics/crude/model"))["committee"]
        assert committee["k"] == len(committee["weights"])
        assert set(committee["estimates"]) == {"beta", "cv", "kl"}
        assert all(
            0 <= estimate[name] <= 1 for estimate in committee["estimates"].values() for name in ("loss", "error")
        )
        await api.topic("plain")
        assert (await api.ok("GET", "/topics/plain/model"))["committee"] is None


async def test_a_correction_gives_the_committee_that_would_have_been(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        for topic, last in (("right", True), ("wrong", False)):
            await api.topic(topic, learner={"kind": "committee", "params": {"k": 3}})
            await api.judge(GRAIN | {"id": "g"}, False, topic)
            await api.judge(OIL | {"id": "o"}, last, topic)
            await api.judge({"id": "x", "text": "tanker and pipeline"}, True, topic)
        await api.judge("o", True, "wrong")
        right, wrong = [
            await api.ok("GET", f"/topics/{t}/model", params={"format": "export"}) for t in ("right", "wrong")
        ]
        assert right == wrong


@pytest.mark.parametrize(
    "params",
    [{"k": 0}, {"of": "auto"}, {"params": {"eta": -1}}, {"combine": "shouting"}, {"seed": 1.5}, {"accept_votes": 5}],
    ids=str,
)
async def test_parameters_that_make_no_committee_are_refused(shared: Api, params: dict[str, Any]) -> None:
    body = {"id": "refused", "learner": {"kind": "committee", "params": params}}
    response = await shared.request("POST", "/topics", json=body)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/learner"


async def test_a_preview_of_another_rule_decides_as_that_rule_would(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, {"combine": "vote", "k": 3})
        learner = {"kind": "committee", "params": {"combine": "unanimous", "k": 3}}
        response = await api.ok("POST", "/topics/crude/preview", {"learner": learner})
        judged = response["judged"]
        assert judged["after"]["abstained"] >= judged["before"]["abstained"]
