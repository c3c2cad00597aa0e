"""A topic that goes by meaning brings the projections that its log needs, and a file brings nothing worse."""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from service.archive.file import MAX_PROJECTION_BYTES
from service.config import Config
from service.run.housekeeping import keep_house
from service.run.replay import replay
from service.topics.projections import from_bytes, made_from, projection_number, to_bytes
from tests.service.archive.test_transfer import NDJSON, exported, imported
from tests.support.api import Api
from tests.support.projected import SUBJECTS, count_stream, document, stream

ASKED = [*stream("asked", 12), document("asked", "oil", 20, [1])]
QUERY = " ".join(SUBJECTS["oil"][0][:4])


async def lived(api: Api, topic: str = "oil", n: int = 600) -> None:
    """A topic that was folded under no projection, then under one, then under another."""
    await api.topic(topic, query=QUERY)
    await judge(api, topic, 0)
    await count_stream(api.sluice, "first", n)
    await keep_house(api.sluice)
    await judge(api, topic, 1)
    await count_stream(api.sluice, "second", n + 100)
    await keep_house(api.sluice)
    await judge(api, topic, 2)


async def judge(api: Api, topic: str, n: int) -> None:
    for i, subject in enumerate(("oil", "grain", "oil", "metal")):
        await api.judge(document(f"judged{n}", subject, i, [0]), subject == "oil", topic)


async def all_of(api: Api, topic: str = "oil") -> Any:
    versions = await api.ok("GET", f"/topics/{topic}/versions")
    body = {"documents": ASKED, "topics": [topic], "store": False, "explain": True}
    return versions, await api.ok("POST", "/classify", body)


def parts(file: bytes, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, file.splitlines()) if line["line"] == kind]


def packed(number: int, blob: bytes) -> bytes:
    line = {"line": "projection", "number": number, "zlib": b64encode(zlib.compress(blob)).decode()}
    return json.dumps(line).encode()


async def test_a_moved_topic_decides_as_it_did_and_every_version_can_be_restored(here: Api, there: Api) -> None:
    await lived(here)
    file = await exported(here, "oil")
    assert len(parts(file, "projection")) == 2
    await imported(there, file)
    assert await all_of(there) == await all_of(here)
    assert await exported(there, "oil") == file
    await keep_house(there.sluice)
    assert await all_of(there) == await all_of(here)
    for version in (3, 8):  # under no projection, and under the first
        for api in (here, there):
            await api.ok("POST", f"/topics/oil/versions/{version}/restore")
        (old, asked), (new, asked_there) = await all_of(here), await all_of(there)
        assert asked_there == asked
        assert new["items"][0]["digest"] == old["items"][0]["digest"]
    assert (await replay(there.sluice.store, "oil", Config(), verify=True)).outcome == "equal"


async def test_a_server_with_projections_of_its_own_serves_the_same_model(here: Api, there: Api) -> None:
    await there.topic("native", query=QUERY)
    await count_stream(there.sluice, "theirs", 800)
    await keep_house(there.sluice)
    await lived(here)
    await imported(there, await exported(here, "oil"))
    mine, theirs = (there.sluice.registry.get(topic).projection for topic in ("oil", "native"))
    assert mine
    assert theirs
    assert there.sluice.registry.snapshot().projections == {mine.tag, theirs.tag}
    versions = [(await api.ok("GET", "/topics/oil/versions"))["items"] for api in (here, there)]
    assert versions[0] == versions[1]
    await keep_house(there.sluice)
    assert there.sluice.registry.get("oil").projection is mine
    await there.judge(document("later", "oil", 1), True, "oil")
    assert there.sluice.registry.get("oil").projection is theirs
    for topic in ("oil", "native"):
        assert (await replay(there.sluice.store, topic, Config(), verify=True)).outcome == "equal"


async def test_projections_that_no_stream_gives_are_refused_and_leave_nothing(here: Api, there: Api) -> None:
    await lived(here)
    lines = (await exported(here, "oil")).splitlines()
    kinds = [json.loads(line)["line"] for line in lines]
    first, epoch = kinds.index("projection"), kinds.index("epoch")
    sent = json.loads(lines[first])
    blob = zlib.decompress(b64decode(sent["zlib"]))
    projection = from_bytes(sent["number"], blob)
    place = made_from(sent["number"])
    wild = replace(projection, scales=np.full_like(projection.scales, np.inf))
    loud = replace(projection, alpha=1e9)

    def with_first(line: bytes) -> Sequence[bytes]:
        return [*lines[:first], line, *lines[first + 1 :]]

    refused = {
        "not finite": (with_first(packed(projection_number(place, wild), to_bytes(wild))), f"Line {first + 1}:"),
        "too loud": (with_first(packed(projection_number(place, loud), to_bytes(loud))), f"Line {first + 1}:"),
        "another": (with_first(packed(sent["number"] + 1, blob)), f"Line {first + 1}:"),
        "a bomb": (with_first(packed(sent["number"], bytes(MAX_PROJECTION_BYTES + 1))), f"Line {first + 1}:"),
        "no projection": (with_first(packed(sent["number"], b"SLP1\xff\xff\xff\xff")), f"Line {first + 1}:"),
        "one missing": ([*lines[:first], *lines[first + 1 :]], "Line "),
        "cut in two": (with_first(json.dumps(sent | {"more": True}).encode()), f"Line {first + 2}:"),
        "out of order": ([*lines[: epoch + 1], lines[first], *lines[epoch + 1 :]], f"Line {epoch + 2}:"),
    }
    for what, (changed, where) in refused.items():
        answer = await there.post("/topics/import", content=b"\n".join(changed) + b"\n", headers=NDJSON)
        assert answer.status_code == 422, (what, answer.text)
        assert where in answer.json()["detail"], (what, answer.json())
    assert (await there.ok("GET", "/topics"))["items"] == []
    assert await there.sluice.store.epochs.numbers() == []
    assert await there.sluice.store.epochs.projections() == []


async def test_a_projection_that_could_be_mistaken_for_another_is_refused(here: Api, there: Api) -> None:
    """Models name it by a tag of 24 bits, which a file can be made to have."""
    await lived(here)
    file = await exported(here, "oil")
    number = parts(file, "projection")[0]["number"]
    epochs = there.sluice.store.epochs
    tag = number % (1 << 24)
    taken = there.sluice.store.connection.redis
    await taken.hset("sluice:{background}:projections", str(99 << 24 | tag), b"another of this tag")
    answer = await imported(there, file, 409)
    assert "tag" in answer["detail"]
    assert (await there.ok("GET", "/topics"))["items"] == []
    assert await epochs.projections() == [99 << 24 | tag]
