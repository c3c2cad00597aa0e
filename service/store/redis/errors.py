"""The errors of Redis, translated into those of this service; anything else is a bug and is raised as it is."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions

from service.errors import GroupGone, StoreUnavailable

FULL = "The store is full: raise its memory limit or delete topics."
TIMED_OUT = "The store did not answer in time; try again."


class TimedOut(StoreUnavailable):
    """Redis did not answer within the timeout."""


@contextmanager
def translated_errors() -> Iterator[None]:
    try:
        yield
    except exceptions.OutOfMemoryError as error:
        raise StoreUnavailable(FULL) from error
    except (exceptions.TimeoutError, exceptions.ConnectionError, exceptions.ReadOnlyError, OSError) as error:
        # A timeout while connecting comes as a ConnectionError.
        if isinstance(error, exceptions.TimeoutError) or isinstance(error.__cause__, exceptions.TimeoutError):
            raise TimedOut(TIMED_OUT) from error
        raise StoreUnavailable("The store cannot be reached; try again.") from error
    except exceptions.RedisClusterException as error:
        if "not enabled" in str(error):
            raise StoreUnavailable(
                "This server is not a node of a Redis Cluster: its address must begin with redis://."
            ) from error
        if error.__cause__ is None and "covered" not in str(error):
            raise  # keys of several slots in one command: a bug
        raise StoreUnavailable("The cluster cannot be reached; try again.") from error
    except (exceptions.ClusterError, exceptions.TryAgainError) as error:
        raise StoreUnavailable("Part of the cluster is down or being moved; try again.") from error
    except exceptions.AskError as error:
        raise StoreUnavailable("This is a node of a Redis Cluster: write redis+cluster:// in its address.") from error
    except exceptions.ResponseError as error:
        code = _code(error)
        if code in {"OOM", "MISCONF", "LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "READONLY"}:
            raise StoreUnavailable(FULL if code == "OOM" else "The store cannot write now; try again.") from error
        if code in {"NOGROUP", "UNBLOCKED"}:
            raise GroupGone("The stream was deleted, and is created again.") from error
        raise


def _code(error: exceptions.ResponseError) -> str:
    """The error's code, which is its first word. From a script, Redis 6.2 sends it after the place in the script, and
    with a dash if the command was refused."""
    match = re.search(r"(?:^|@user_script: ?\d+: -?)([A-Z]+) ", str(error))
    return match[1] if match else ""
