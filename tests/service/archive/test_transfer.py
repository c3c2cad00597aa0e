"""A topic that is moved decides as it did, learns as it would have, and comes as a whole or not at all."""

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from service.archive.file import example
from service.archive.lines import EventLine, Words
from service.config import Config
from service.run.housekeeping import keep_house
from service.run.replay import replay
from service.store import codec
from service.store.events import Event
from service.store.redis.embedded import Embedded
from service.store.redis.keys import out_part_key
from service.topics.background import place_of
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.readers import JudgingClient
from tests.support.refusals import refused
from tests.support.streaming import classify, grain, oil
from tests.support.waiting import wait_until

NDJSON = {"content-type": "application/x-ndjson"}
ASKED = [*oil(20, "new-o"), *grain(20, "new-g")]


async def lived(api: Api, topic: str = "crude", **fields: Any) -> None:
    """Some time of a topic's life: a stream, judgements, corrections, a restored version, another query."""
    await api.topic(topic, audit=0.5, **fields)
    await stream(api, "a")
    reader = JudgingClient("ann", [topic], seed=20)
    for _ in range(16):
        await reader.step(api)
    await api.ok("PATCH", f"/topics/{topic}", {"query": "crude oil", "goal": {"max_abstain": 0.3}})
    await stream(api, "b")
    await api.ok("POST", f"/topics/{topic}/versions/9/restore")
    another = JudgingClient("bob", [topic], seed=20)
    for _ in range(6):
        await another.step(api)
    assert not reader.failed + another.failed
    await api.ok("POST", f"/topics/{topic}/known", {"documents": [OIL | {"id": "k1"}, GRAIN | {"id": "k2"}]})
    await api.ok("POST", f"/topics/{topic}/review/skip", {"document": "oa1"})


async def stream(api: Api, prefix: str) -> None:
    """Documents pass, and a new background is in force."""
    await classify(api, [*oil(30, f"o{prefix}"), *grain(30, f"g{prefix}")])
    await api.sluice.epochs.publish()


async def exported(api: Api, topic: str = "crude") -> bytes:
    answer = await api.get(f"/topics/{topic}/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, NDJSON["content-type"])
    return answer.content


async def imported(api: Api, file: bytes, status: int = 201, **params: Any) -> Any:
    answer = await api.post("/topics/import", content=file, headers=NDJSON, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


async def all_of(api: Api, topic: str = "crude") -> Any:
    """Everything that the API shows of a topic, and how it decides new documents."""
    pages = {
        path: await api.ok("GET", f"/topics/{topic}{path}")
        for path in ("", "/versions", "/judgements", "/known", "/metrics")
    }
    body = {"documents": ASKED, "topics": [topic], "store": False, "explain": True}
    return pages, await api.ok("POST", "/classify", body)


# -- the same ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wh", "auto", "committee"])
async def test_a_moved_topic_is_what_it_was_to_the_bit(here: Api, there: Api, kind: str) -> None:
    """Decisions, scores, reasons, versions with their digests, judgements, figures, what has passed."""
    await lived(here, learner={"kind": kind})
    before = await all_of(here)
    answer = await imported(there, await exported(here))
    assert answer == before[0][""]
    assert await all_of(there) == before
    assert (await replay(there.sluice.store, "crude", Config(), verify=True)).outcome == "equal"


async def test_a_moved_topic_stands_to_its_goal_as_it_did(here: Api, there: Api) -> None:
    """What was decided by other settings does not count, neither before the move nor after it."""
    await here.topic(goal={"max_abstain": 0.9}, audit=1.0)
    await classify(here, [*oil(60), *grain(60)])
    goal = {"max_abstain": 0.2, "max_error": 0.3, "min_precision": 0.8, "min_recall": 0.5}
    await here.ok("PATCH", "/topics/crude", {"goal": goal})
    await classify(here, [*oil(40, "p"), *grain(220, "q")])
    for i in range(30):
        await here.judge(f"p{i}", True)
        await here.judge(f"q{i}", False)
    before = (await here.ok("GET", "/topics/crude"))["status"]
    assert before["goal"]["abstain"]["judged"] == 260
    assert (await imported(there, await exported(here)))["status"] == before
    await classify(there, grain(10, "r"), topics=["crude"])
    assert (await there.ok("GET", "/topics/crude"))["status"]["goal"]["abstain"]["judged"] == 270


async def test_corrections_and_all_else_work_after_a_move_as_before(here: Api, there: Api) -> None:
    await lived(here)
    await imported(there, await exported(here))
    for api in (here, there):
        (last, *_, first) = (await api.ok("GET", "/topics/crude/judgements"))["items"]
        assert (await api.judge(first["document"], first["relevant"]))["status"] == "known"
        assert (await api.judge(first["document"], not first["relevant"]))["status"] == "corrected"
        await api.ok("DELETE", f"/topics/crude/judgements/{last['document']}")
        await api.judge(OIL | {"id": "later"}, True)
        await api.ok("POST", "/topics/crude/versions/5/restore")
        await api.judge(GRAIN | {"id": "later still"}, False)
    (old, asked), (new, asked_there) = await all_of(here), await all_of(there)
    assert asked == asked_there
    assert [v["digest"] for v in old["/versions"]["items"]] == [v["digest"] for v in new["/versions"]["items"]]


async def test_grades_move_with_their_topic(here: Api, there: Api) -> None:
    await here.topic()
    await here.judge(OIL | {"id": "o"}, True)
    await here.judge("o", 3)
    await here.judge(GRAIN | {"id": "g"}, 0)
    file = await exported(here)
    await imported(there, file)
    for api in (here, there):
        items = (await api.ok("GET", "/topics/crude/judgements"))["items"]
        assert [(one["document"], one["grade"], one["version"]) for one in items] == [("g", 0, 4), ("o", 3, 3)]
        assert (await api.judge("o", 3))["status"] == "known"
        assert (await api.judge("o", 2))["status"] == "corrected"
        assert (await api.judge("o", False))["status"] == "corrected"
    (old, asked), (new, asked_there) = await all_of(here), await all_of(there)
    assert asked == asked_there
    assert [v["digest"] for v in old["/versions"]["items"]] == [v["digest"] for v in new["/versions"]["items"]]
    lines = file.splitlines(keepends=True)
    for wrong in (b'"grade":4', b'"grade":0', b'"grade":2.5'):
        turned = b"".join(lines).replace(b'"grade":3', wrong)
        refused(await there.post("/topics/import", content=turned, headers=NDJSON), 422)


async def test_a_server_with_a_stream_of_its_own_serves_the_same_model(here: Api, there: Api) -> None:
    """Its numbers of epochs are other ones; words of new documents are weighed there as all documents are."""
    await stream(there, "own")
    await there.topic("native")
    await stream(there, "own2")
    own = there.sluice.epochs.current.number
    await lived(here)
    file = await exported(here)
    await imported(there, file)
    assert there.sluice.epochs.current.number == own
    both = [(await api.ok("GET", "/topics/crude/versions"))["items"] for api in (here, there)]
    assert both[0] == both[1]
    for version in (5, 10):  # under the backgrounds of then, which came along
        restored = [await api.ok("POST", f"/topics/crude/versions/{version}/restore") for api in (here, there)]
        assert restored[0]["status"]["accept_above"] == restored[1]["status"]["accept_above"]
    assert (await there.judge(OIL | {"id": "later"}, True))["status"] == "learned"
    assert there.sluice.registry.get("crude").epoch == own
    assert (await replay(there.sluice.store, "crude", Config(), verify=True)).outcome == "equal"
    assert (await replay(there.sluice.store, "native", Config(), verify=True)).outcome == "equal"


async def test_the_epochs_that_came_along_stay_as_long_as_their_own_would(here: Api, there: Api) -> None:
    await lived(here)
    for n in range(20):
        await stream(there, f"s{n}")
    file = await exported(here)
    await imported(there, file)
    came = {line["number"] for line in map(json.loads, file.splitlines()) if line["line"] == "epoch"}
    await keep_house(there.sluice)
    assert came <= set(await there.sluice.store.epochs.numbers())
    assert all(place_of(number) < 5 for number in came)
    for n in range(16):
        await stream(there, f"t{n}")
    for _ in range(2):
        await keep_house(there.sluice)  # the topic is put under the background of this stream
    assert not came & set(await there.sluice.store.epochs.numbers())
    assert await there.sluice.store.epochs.lent() == {}


async def test_an_empty_server_goes_on_from_the_background_that_comes(here: Api, there: Api) -> None:
    await lived(here)
    await imported(there, await exported(here))
    assert there.sluice.epochs.current.to_bytes() == here.sluice.epochs.current.to_bytes()
    counted = there.sluice.epochs.current.frequencies.documents
    await stream(there, "c")
    assert there.sluice.epochs.current.frequencies.documents == counted + 60


async def test_a_topic_can_be_copied_under_another_name(here: Api) -> None:
    await lived(here)
    file = await exported(here)
    copy = await imported(here, file, id="copy")
    assert copy["id"] == "copy"
    pages, asked = await all_of(here, "copy")
    original, original_asked = await all_of(here)
    assert pages["/judgements"] == original["/judgements"]
    scores = [[r["decisions"][0]["score"] for r in answer["results"]] for answer in (asked, original_asked)]
    assert scores[0] == scores[1]
    assert (await replay(here.sluice.store, "copy", Config(), verify=True)).outcome == "equal"


async def test_a_file_that_is_exported_again_says_the_same(here: Api, there: Api) -> None:
    await lived(here)
    file = await exported(here)
    await imported(there, file)
    assert await exported(here) == file
    assert await exported(there) == file


async def test_a_long_log_that_was_compacted_moves_too(there: Api, redis_url: str) -> None:
    async with running_api(redis_url, judgements_kept=20, versions_kept=10) as small:
        await small.topic()
        for wanted, unwanted in zip(oil(20), grain(20), strict=True):
            await small.judge(wanted, True)
            await small.judge(unwanted, False)
        versions = await small.ok("GET", "/topics/crude/versions")
        file = await exported(small)
    assert any(json.loads(line).get("kind") == "compacted" for line in file.splitlines())
    await imported(there, file)
    assert (await there.ok("GET", "/topics/crude/versions"))["items"] == versions["items"]


# -- once, or not at all -----------------------------------------------------------------------------------------------


async def test_the_same_file_again_changes_nothing(here: Api, there: Api) -> None:
    await lived(here)
    file = await exported(here)
    first = await imported(there, file)
    await there.judge(OIL | {"id": "later"}, True)
    again = await imported(there, file, 200)
    assert again["status"]["version"] == first["status"]["version"] + 1


async def test_a_name_that_is_taken_is_replaced_only_if_asked(here: Api, there: Api) -> None:
    await lived(here)
    file = await exported(here)
    await there.topic(query="football")
    await there.judge(GRAIN, True)
    answer = await imported(there, file, 409)
    detail = "There is a topic 'crude' already; choose another with `id`, or replace it with `replace=true`."
    assert answer["detail"] == detail
    assert (await there.ok("GET", "/topics/crude"))["query"] == "football"
    await imported(there, file, 200, replace=True)
    assert await all_of(there) == await all_of(here)
    await there.judge(OIL | {"id": "later"}, True)
    await imported(there, file, 200, replace=True)  # back to what was kept
    assert await all_of(there) == await all_of(here)


async def test_another_process_hears_of_a_topic_that_took_the_place_of_another(here: Api, elsewhere: Embedded) -> None:
    await lived(here)
    file, before = await exported(here), await here.decide(OIL)
    with Redis.from_url(elsewhere.url) as client:
        client.flushall()
    async with running_api(elsewhere.url) as first, running_api(elsewhere.url) as other:
        await first.topic(query="football")
        await imported(first, file, 200, replace=True)

        async def replaced() -> bool:
            return bool(await other.decide(OIL) == before)

        await wait_until(replaced)


async def test_a_file_cut_short_or_changed_is_refused_with_its_line_and_leaves_nothing(here: Api, there: Api) -> None:
    await lived(here)
    lines = (await exported(here)).splitlines(keepends=True)
    kinds = [json.loads(line)["line"] for line in lines]
    judged = next(n for n, line in enumerate(lines) if b'"kind":"judged"' in line)
    epoch, known = kinds.index("epoch"), kinds.index("known")

    def changed(n: int, old: bytes, new: bytes) -> bytes:
        assert old in lines[n]
        return b"".join([*lines[:n], lines[n].replace(old, new, 1), *lines[n + 1 :]])

    refused = {
        "cut at a line": (b"".join(lines[:-1]), f"stops after line {len(lines) - 1}"),
        "cut in a line": (b"".join(lines)[: -len(lines[-1]) - 10], f"Line {len(lines) - 1}:"),
        "a line lost": (b"".join(lines[:judged] + lines[judged + 1 :]), f"Line {len(lines) - 1}:"),
        "a label turned": (changed(judged, b'"decision":"', b'"relevant":true,"decision":"'), "Line "),
        "not JSON": (changed(judged, b"{", b"["), f"Line {judged + 1}:"),
        "a misspelt kind": (changed(judged, b'"judged"', b'"fudged"'), f"Line {judged + 1}:"),
        "an unknown field": (changed(known, b'"title"', b'"titel"'), f"Line {known + 1}:"),
        "a broken epoch": (changed(epoch, b'"zlib":"', b'"zlib":"AAAA'), f"Line {epoch + 1}:"),
        "no header": (b"".join(lines[1:]), "Line 1:"),
        "a newer format": (changed(0, b"sluice-topic/1", b"sluice-topic/2"), "Line 1:"),
        "two files": (b"".join(lines) * 2, f"Line {len(lines) + 1}:"),
        "nothing": (b"\n", "The file is empty."),
    }
    for what, (file, where) in refused.items():
        answer = await there.post("/topics/import", content=file, headers=NDJSON)
        assert answer.status_code in (400, 422), (what, answer.text)
        assert where in answer.json()["detail"], (what, answer.json())
    assert (await there.ok("GET", "/topics"))["items"] == []
    assert await there.sluice.store.epochs.numbers() == []
    with Redis.from_url(there.sluice.config.redis or "") as client:
        assert client.keys("sluice:{crude}*") == []


async def test_a_settings_line_that_this_server_cannot_follow_is_refused(there: Api) -> None:
    for field, value in (
        ("learner", {"kind": "none"}),
        ("rules", {"accept_if": "(", "reject_if": None}),
        ("retrain", {"method": "magic"}),
    ):
        header, created, end = example()
        created = created | {"settings": created["settings"] | {field: value}}
        file = b"".join(json.dumps(line).encode() + b"\n" for line in (header, created, end))
        assert (await imported(there, file, 422))["detail"].startswith("Line 2: ")


async def test_numbers_that_would_break_the_topic_later_are_refused(there: Api) -> None:
    for i, field, value in ((1, "at_ms", 9 * 10**15), (0, "seq", 10**14), (1, "seq", 10**14)):
        lines = example()
        lines[i] |= {field: value}
        file = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        assert (await imported(there, file, 422))["detail"].startswith(f"Line {i + 1}: ")
    lines = example()
    lines[1]["settings"]["created_ms"] = 9 * 10**15
    file = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert (await imported(there, file, 422))["detail"].startswith("Line 2: ")
    assert (await there.ok("GET", "/topics"))["items"] == []


async def test_a_file_that_is_refused_leaves_the_background_as_it_is(here: Api, there: Api) -> None:
    await lived(here)
    await there.topic()
    before = await there.decide(OIL)
    await imported(there, await exported(here), 409)
    await there.sluice.epochs.follow()
    assert there.sluice.epochs.current.number == 0
    assert await there.decide(OIL) == before


async def test_the_same_file_again_mends_a_stream_that_belongs_to_another(here: Api, there: Api) -> None:
    """As it does when the process died after the topic was replaced, before its stream was."""
    await lived(here)
    file = await exported(here)
    await imported(there, file, 201)
    with Redis.from_url(there.sluice.config.redis or "") as client:
        client.set(out_part_key("crude", "owner"), "another")
        await imported(there, file, 200)
        head = (await there.sluice.store.heads(["crude"]))[0]
        assert head
        assert client.get(out_part_key("crude", "owner")) == head.born.encode()


async def test_what_had_been_delivered_before_a_move_is_not_taken_for_rejected(here: Api) -> None:
    """The stream of the topic starts again, without what came before."""
    await here.topic("moved")
    (document,) = oil(1, "delivered")
    await classify(here, [document])
    assert [item["document"] for item in (await here.ok("GET", "/topics/moved/accepted"))["items"]] == [document["id"]]
    await imported(here, await exported(here, "moved"), 200, replace=True)
    await here.judge(document["id"], True, topic="moved")
    judged = await here.sluice.learning.read("moved", lambda fold: dict(fold.resolved.judged))
    assert judged[document["id"]].origin == "shown"


async def test_what_is_staged_and_never_taken_expires(here: Api, there: Api) -> None:
    """As when a process dies in the middle: nothing but names that nobody reads, and they go away by themselves."""
    await lived(here)
    file = await exported(here)
    with Redis.from_url(there.sluice.config.redis or "") as client:
        client.config_set("maxmemory", "1")
        answer = await there.post("/topics/import", content=file, headers=NDJSON)
        client.config_set("maxmemory", "0")
        left = {key: client.ttl(key) for key in client.keys("sluice:{crude}*")}
    assert answer.status_code == 503
    assert all(0 < ttl <= 600 for ttl in left.values())
    await imported(there, file)


# -- the form ----------------------------------------------------------------------------------------------------------

floats = st.floats(0, 1e6, width=32)


@given(st.dictionaries(st.from_regex(r"\A[a-zé東]{1,9}\Z"), st.tuples(floats, floats), max_size=20))
def test_words_come_back_to_the_bit(words: dict[str, tuple[float, float]]) -> None:
    counts, idf = (np.array([pair[i] for pair in words.values()], np.float32) for i in (0, 1))
    bag = codec.pack_bag(list(words), counts, idf)
    assert Words.model_validate_json(Words.of(bag).model_dump_json()).to_bag() == bag


def test_no_field_of_an_event_is_left_behind() -> None:
    stored = {field.metadata.get("name", field.name) for field in fields(Event)}
    renamed = {"bag": "words"}  # in the file
    assert {renamed.get(name, name) for name in stored} | {"line"} == set(EventLine.model_fields)


async def test_every_event_comes_back_as_it_was(here: Api) -> None:
    await lived(here)
    await here.ok(
        "PUT", "/topics/crude/model", await here.ok("GET", "/topics/crude/model", params={"format": "export"})
    )
    _, events = await here.sluice.store.logs.load("crude")
    assert {event.kind for event in events} >= {"created", "edited", "judged", "withdrawn", "restored", "published"}
    for event in events:
        line = EventLine.of(event).model_dump_json(exclude_unset=True)
        assert EventLine.model_validate_json(line).to_event() == event
