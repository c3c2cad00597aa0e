"""A log as long as they get: after a correction or a withdrawal in it, the model is right at once.

In what time, `scripts/bench wait` measures.
"""

import numpy as np
import pytest

from service.clock import now_ms
from service.run.replay import replay
from service.store import codec
from service.store.events import Event
from tests.support.api import Api, running_api

JUDGEMENTS = 5000
TERMS = 90  # distinct ones a document, as in newswire
WORDS = np.array([f"word{i}" for i in range(20_000)])


async def fill(api: Api, topic: str) -> None:
    """Appends judgements on documents whose words are as unevenly common as words are."""
    chance = np.random.default_rng(20)
    common = 1 / np.arange(1, len(WORDS) + 1)
    common /= common.sum()
    events: list[Event] = []
    for i, drawn in enumerate(chance.choice(len(WORDS), (JUDGEMENTS, TERMS), p=common)):
        relevant = i % 10 == 0
        words = [*WORDS[np.unique(drawn)], *(["opec", "crude"] if relevant else [])]
        counts, idf = np.ones(len(words), np.float32), np.linspace(1, 8, len(words), dtype=np.float32)
        bag = codec.pack_bag(words, counts, idf)
        events.append(
            Event("judged", now_ms(), 0, document=f"d{i}", relevant=relevant, features=bag, decision="reject")
        )
    head, _ = await api.sluice.store.logs.load(topic)
    for start in range(0, JUDGEMENTS, 500):
        await api.sluice.store.logs.append(topic, head.born, events[start : start + 500])


@pytest.mark.parametrize("kind", ["wh", "eg"])
async def test_a_correction_among_five_thousand_judgements_takes_effect_at_once(redis_url: str, kind: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic(learner={"kind": kind})
        await fill(api, "crude")
        await api.ok("GET", "/topics/crude/judgements")
        assert (await api.judge({"id": "x", "text": "crude"}, True))["status"] == "learned"
        early, late = await api.judge("d10", False), await api.judge("d4999", True)
        assert (early["status"], late["status"]) == ("corrected", "corrected")
        gone = await api.ok("DELETE", "/topics/crude/judgements/d2500")
        assert (await api.decide({"text": "crude"}))["version"] == gone["version"]
        await api.ok("POST", f"/topics/crude/versions/{early['version']}/restore")
        assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"
