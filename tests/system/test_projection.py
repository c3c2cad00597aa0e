"""A whole service goes by meaning: the projection appears, all processes decide alike, and a kill loses nothing."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import Any

import pytest
from redis import Redis

from service.config import Config
from service.processes import HOUSEKEEPING, command
from service.run.replay import replay_all
from service.store.redis.keys import PROJECTED_EPOCHS, PROJECTIONS
from tests.support.api import Api
from tests.support.live import Live, live
from tests.support.processes import end, environment
from tests.support.projected import SUBJECTS, document, stream
from tests.support.waiting import PATIENCE_S, wait_until

PROCESSES, DOCUMENTS = 2, 700
ASKED = [*stream("asked", 12), document("asked", "oil", 100, [1])]
# The housekeeper, killed when it has fitted a projection and would publish it.
KILLED = """
import asyncio, os, signal
from service.run import housekeeping
from service.topics import projecting

async def publish(*args):
    os.kill(os.getpid(), signal.SIGKILL)

projecting.publish = publish
asyncio.run(housekeeping.main())
"""


@pytest.fixture
def processes(redis_url: str) -> Iterator[list[Live]]:
    with ExitStack() as stack:
        yield [stack.enter_context(live(redis_url, epoch_s=0, sweep_s=0.1)) for _ in range(PROCESSES)]


@pytest.fixture
async def apis(processes: list[Live]) -> AsyncIterator[list[Api]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Api(base_url=each.address, timeout=PATIENCE_S)) for each in processes]


@contextmanager
def housekeeper(redis_url: str, *program: str) -> Iterator["subprocess.Popen[bytes]"]:
    env = environment(redis=redis_url, sweep_s=0.1)
    process = subprocess.Popen(program or command(HOUSEKEEPING), env=env)
    try:
        yield process
    finally:
        end(process)


async def verified(redis_url: str) -> set[str]:
    return {result.outcome for result in await replay_all(redis_url, Config(redis=redis_url), verify=True)}


async def streamed(apis: list[Api]) -> None:
    """Two topics with judgements, and a stream that both processes get a part of."""
    for topic, subject in (("oil", "oil"), ("grain", "grain")):
        await apis[0].topic(topic, query=" ".join(SUBJECTS[subject][0][:3]))
        for n, other in enumerate(("oil", "grain", "metal", "oil", "grain", "money")):
            await apis[n % PROCESSES].judge(document(f"judged-{topic}", other, n, [0]), other == subject, topic)
    documents = stream("passing", DOCUMENTS)
    for start in range(0, DOCUMENTS, 50):
        batch = {"documents": documents[start : start + 50]}
        await apis[start // 50 % PROCESSES].ok("POST", "/classify", batch)


async def decisions(api: Api) -> Any:
    body = {"documents": ASKED, "topics": ["oil", "grain"], "store": False, "explain": True}
    return await api.ok("POST", "/classify", body)


async def test_a_projection_appears_and_every_process_decides_by_it(apis: list[Api], redis_url: str) -> None:
    await streamed(apis)
    before = [each["decisions"][0]["score"] for each in (await decisions(apis[0]))["results"]]
    with Redis.from_url(redis_url, decode_responses=True) as client:
        with housekeeper(redis_url, sys.executable, "-c", KILLED) as killed:
            assert await asyncio.to_thread(killed.wait, PATIENCE_S) == -signal.SIGKILL
        assert client.hlen(PROJECTIONS) == client.hlen(PROJECTED_EPOCHS) == 0
        assert await verified(redis_url) == {"equal"}
        with housekeeper(redis_url):

            async def projected() -> bool:
                return bool(client.hlen(PROJECTIONS))

            async def alike() -> bool:
                answers = [await decisions(api) for api in apis]
                scores = [each["decisions"][0]["score"] for each in answers[0]["results"]]
                return bool(answers[0] == answers[1] and scores != before)

            await wait_until(projected)
            await wait_until(alike)
            for n, api in enumerate(apis):
                await api.judge(document("later", "oil", n, [1]), True, "oil")
            await wait_until(alike)
        assert client.hlen(PROJECTIONS) == 1
    assert await verified(redis_url) == {"equal"}
    scores = {result["document"]: result["decisions"][0]["score"] for result in (await decisions(apis[0]))["results"]}
    assert scores["asked-oil-100"] > max(scores[name] for name in scores if "-oil-" not in name)
