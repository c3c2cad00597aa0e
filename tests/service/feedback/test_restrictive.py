"""Goals of restrictive classification, through the API: less error for more loss, and the curve that shows it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import Api, running_api
from tests.support.readers import GRAIN_WORDS, OIL_WORDS
from tests.support.streaming import classify, document, grain, oil, status

CLEAR, MIXED = 250, 40  # documents of each clear kind, and of those that could be either


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, epoch_s=0.0) as api:
        yield api


def stream(prefix: str) -> dict[str, tuple[dict[str, Any], bool]]:
    """Documents about oil, which are relevant, about grain, which are not, and about both, of which every other is."""
    mixed = [document(f"{prefix}m{i}", [*OIL_WORDS, *GRAIN_WORDS]) for i in range(MIXED)]
    labelled = [(each, True) for each in oil(CLEAR, f"{prefix}o")] + [
        (each, False) for each in grain(CLEAR, f"{prefix}g")
    ]
    labelled += [(each, i % 2 == 0) for i, each in enumerate(mixed)]
    return {each["id"]: (each, relevant) for each, relevant in labelled}


async def loss_and_error(api: Api, documents: dict[str, tuple[dict[str, Any], bool]]) -> tuple[float, float]:
    results = await classify(api, [each for each, _ in documents.values()], topics=["crude"], store=False)
    decisions = [(result["decisions"][0]["decision"], documents[result["document"]][1]) for result in results]
    decided = [(decision == "accept", relevant) for decision, relevant in decisions if decision != "abstain"]
    wrong = sum(accepted != relevant for accepted, relevant in decided)
    return 1 - len(decided) / len(decisions), wrong / max(len(decided), 1)


async def test_a_loss_is_spent_on_what_is_not_sure_and_an_error_costs_as_little_loss_as_it_can(api: Api) -> None:
    await api.topic(audit=1.0, semantic=False)
    past, later = stream("a"), stream("b")
    await classify(api, [each for each, _ in past.values()])
    judgements = [{"topic": "crude", "document": id, "relevant": relevant} for id, (_, relevant) in past.items()]
    await api.ok("POST", "/feedback", {"judgements": judgements})
    found: dict[str, tuple[float, float]] = {}
    goals = {"little": {"max_abstain": 0.02}, "much": {"max_abstain": 0.4}, "any": {"max_error": 0.5}}
    goals |= {"low": {"max_error": 0.02}, "both": {"max_error": 0.02, "max_abstain": 0.4}}
    for name, goal in goals.items():
        preview = await api.ok("POST", "/topics/crude/preview", {"goal": goal})
        changed = (await api.ok("PATCH", "/topics/crude", {"goal": goal}))["status"]
        for cut in ("reject_below", "accept_above"):
            assert preview["after"][cut] == changed[cut]
        found[name] = await loss_and_error(api, later)
        now = (await api.ok("GET", "/topics/crude/tradeoff"))["now"]
        assert (now["reject_below"], now["accept_above"]) == (changed["reject_below"], changed["accept_above"])
        assert now["loss"] <= goal.get("max_abstain", 1.0)
    assert found["little"][0] <= 0.02
    assert 0.05 < found["much"][0] <= 0.4
    assert found["much"][1] < 0.7 * found["little"][1]
    assert found["any"][0] == 0
    assert found["low"][1] < found["any"][1] / 2
    assert found["both"][0] <= 0.4


async def test_an_error_among_what_is_decided_can_be_promised(api: Api) -> None:
    """It counts rejected documents, too, so nothing is certain before audits are judged."""
    await api.topic(audit=1.0, semantic=False)
    documents = [*oil(150), *grain(150)]
    await classify(api, documents)
    shown = [{"topic": "crude", "document": each["id"], "relevant": True} for each in oil(150)]
    few = [{"topic": "crude", "document": f"g{i}", "relevant": False} for i in range(10)]
    await api.ok("POST", "/feedback", {"judgements": shown + few})
    await api.ok("PATCH", "/topics/crude", {"goal": {"max_error": 0.05}})
    assert (await api.decide(documents[0], store=False))["certain"] is False
    rest = [{"topic": "crude", "document": f"g{i}", "relevant": False} for i in range(10, 150)]
    await api.ok("POST", "/feedback", {"judgements": rest})
    now = await status(api)
    assert (await api.decide(documents[0], store=False))["certain"] is True
    assert now["accept_above"] < 1
