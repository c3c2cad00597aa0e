"""The address of a Redis Cluster: what it names, and what is refused at the start."""

import pytest

from service.config import Config, StartError
from service.redis_url import Nodes, nodes


def test_an_address_names_nodes_and_how_to_speak_to_them() -> None:
    assert nodes("redis+cluster://a") == Nodes([("a", 6379)], {})
    assert nodes("redis+cluster://a:7000,[::1]:7001,b") == Nodes([("a", 7000), ("::1", 7001), ("b", 6379)], {})
    named = {"username": "u", "password": "p@ss"}
    assert nodes("redis+cluster://u:p%40ss@a,b/0") == Nodes([("a", 6379), ("b", 6379)], named)
    secured = {"password": "secret", "ssl": True, "ssl_ca_certs": "/ca.pem"}
    assert nodes("rediss+cluster://:secret@a:1?ssl_ca_certs=/ca.pem") == Nodes([("a", 1)], secured)


@pytest.mark.parametrize("rest", ["", "a,,b", "a:port", "a/1", "user:hunter2@"])
def test_an_address_of_nothing_is_refused_at_the_start(rest: str) -> None:
    with pytest.raises(StartError, match="SLUICE_REDIS") as refused:
        Config.from_env(redis=f"redis+cluster://{rest}")
    assert "hunter2" not in str(refused.value)
