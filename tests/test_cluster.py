"""The workers of a Dask cluster give what one process gives, bit for bit; one that dies is an error."""

import os
import signal
from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster

from models.boosting import Params, boost
from models.farm import WorkerDied, farm
from service.cluster import Cluster
from tests.test_farm import assert_same, corpus


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Three worker processes on this machine."""
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_cluster_gives_what_one_process_gives(client: Client) -> None:
    x, labels = corpus()
    p, told, crew = Params(S=70, C=1, N=20), list[float](), Cluster(client)
    assert crew.size == 3
    assert_same(farm(p, x, labels, crew, told.append), boost(p, x, labels))
    assert_same(farm(Params("D", S=5), x, labels, crew), boost(Params("D", S=5), x, labels))
    assert told[-1] == 1.0


def test_a_worker_that_is_killed_is_an_error_and_not_a_wait(client: Client) -> None:
    x, labels = corpus()

    def kill(done: float) -> None:
        if done == 0.2:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    with pytest.raises(WorkerDied, match="a worker of the Dask cluster has died"):
        farm(Params(S=5), x, labels, Cluster(client), kill)
