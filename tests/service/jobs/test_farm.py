"""The workers of a Dask cluster give what one process gives, bit for bit; one that dies is an error."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from distributed import Client, LocalCluster

from models.methods.boosting import Params, boost
from models.methods.boosting import fit as fit_alone
from models.methods.farm import WorkerDied, farm
from models.methods.matrix import Examples
from models.text.analysis import Analysis, bags
from service.jobs.farm.dask import Cluster
from tests.models.methods.test_farm import assert_same, corpus
from tests.support import ROOT
from tests.support.readers import GRAIN_WORDS, OIL_WORDS

GUIDE = (ROOT / "docs" / "boosting.md").read_text()


@contextmanager
def local(workers: int) -> Iterator[Client]:
    """Worker processes on this machine; Dask always serves its state by HTTP, here on any free port."""
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **here) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with local(2) as client:
        yield client


def test_a_cluster_gives_what_one_process_gives_fit_after_fit(client: Client) -> None:
    """The second fit has other parameters, and fewer terms than there are workers."""
    x, labels = corpus()
    p, shares_done, crew = Params(S=30, C=1, N=5), list[float](), Cluster(client)
    few = x.only(np.arange(40) == 7)
    assert crew.size == 2
    assert_same(farm(p, x, labels, crew, shares_done.append), boost(p, x, labels))
    assert_same(farm(Params("RA", S=5), few, labels, crew), boost(Params("RA", S=5), few, labels))
    assert shares_done[-1] == 1.0


def test_the_guide_works_as_printed(client: Client, tmp_path: Path) -> None:
    """But for where the scheduler is, and in fewer rounds."""
    (printed,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    assert "tcp://scheduler:8786" in printed
    assert "Params()" in printed
    documents = [("", " ".join(words[i:] + words[:3])) for words in (OIL_WORDS, GRAIN_WORDS) for i in range(8)]
    labels = np.arange(16)[:, None] < np.array([[8, 2]])
    script = tmp_path / "guide.py"
    here = printed.replace("tcp://scheduler:8786", client.scheduler.address)
    script.write_text(here.replace("Params()", "Params(S=10)"))
    planes = run_path(str(script), {"documents": documents, "labels": labels})["planes"]
    alone = fit_alone(Params(S=10), Examples.of_presence(bags(documents, Analysis())), labels)
    assert planes.w.tobytes() == alone.w.tobytes()


def test_a_worker_that_is_killed_is_an_error_and_not_a_wait(client: Client) -> None:
    x, labels = corpus()

    def kill(done: float) -> None:
        if done == 0.2:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    with pytest.raises(WorkerDied, match="a worker of the Dask cluster, or its scheduler, has died"):
        farm(Params(S=5), x, labels, Cluster(client), kill)


def test_a_cluster_without_workers_is_refused() -> None:
    with local(0) as client, pytest.raises(ValueError, match="the Dask cluster has no workers yet"):
        Cluster(client)
