"""The newest documents, scored by a topic, and by one that is made a moment later."""

from collections.abc import AsyncIterator

import pytest

from service.errors import BadInput
from service.schemas import NewTopic, Rules
from tests.support.api import GRAIN, OIL, QUERY, Api, running_api


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


@pytest.mark.parametrize("reject_if", [None, "kansas"])
async def test_a_topic_decides_as_was_said_before_it_was_made(api: Api, reject_if: str | None) -> None:
    texts = [OIL, GRAIN, {"text": "crude prices"}, {"text": "barrels of wheat in Kansas, and oil output"}]
    documents = [document | {"id": f"d{i}"} for i, document in enumerate(texts)]
    await api.ok("POST", "/classify", {"documents": documents})
    new = NewTopic(id="crude", query=QUERY, rules=Rules(reject_if=reject_if))
    said = await api.sluice.newest.begin(new)
    await api.ok("POST", "/topics", new.model_dump(mode="json", exclude_none=True))
    answer = await api.ok("POST", "/classify", {"documents": documents, "topics": ["crude"], "store": False})
    made = [result["decisions"][0]["decision"] for result in answer["results"]]
    assert (said.documents, said.accepted, said.abstained) == (4, made.count("accept"), made.count("abstain"))
    assert said.accepted
    assert said.accepts[0] == OIL["title"]


async def test_nothing_is_kept_of_a_topic_that_was_only_tried(api: Api) -> None:
    assert await api.sluice.newest.begin(NewTopic(name="x", query=QUERY)) == (
        await api.sluice.newest.begin(NewTopic(name="x", query=QUERY))
    )
    assert (await api.ok("GET", "/topics"))["items"] == []
    with pytest.raises(BadInput):
        await api.sluice.newest.begin(NewTopic(name="x", rules=Rules(accept_if="(")))


async def test_scores_are_those_that_classify_gives(api: Api) -> None:
    await api.topic()
    await api.ok("POST", "/classify", {"documents": [OIL | {"id": "a"}, GRAIN | {"id": "b"}]})
    scores = await api.sluice.newest.scores(await api.sluice.topics.find("crude"))
    expected = [(await api.decide(document))["score"] for document in (OIL, GRAIN)]
    assert sorted(scores) == pytest.approx(sorted(expected), abs=1e-5)
