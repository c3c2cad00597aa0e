"""Trouble of Redis becomes an error of the service; a bug stays one."""

import pytest
from redis.exceptions import ResponseError

from service.errors import GroupGone, StoreUnavailable
from service.store.redis.errors import translated_errors


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'. script: f0, on @user_script:3.", StoreUnavailable),
        (
            "Error running script (call to f_0): @user_script:3: @user_script: 3: -OOM command not allowed when used "
            "memory > 'maxmemory'.",
            StoreUnavailable,
        ),
        ("@user_script: 3: -MISCONF Errors writing to the AOF file", StoreUnavailable),
        ("NOGROUP No such key 'sluice:in' or consumer group 'sluice'", GroupGone),
        ("Error running script (call to f_0): @user_script:1: NOGROUP No such key 'sluice:in'", GroupGone),
        ("@user_script: 3: -READONLY You can't write against a read only replica.", StoreUnavailable),
        ("BUSYGROUP Consumer Group name already exists", ResponseError),
        ("ERR value is not an integer: OOM and BUSY are not meant", ResponseError),
    ],
)
def test_trouble_is_told_from_bugs_also_as_redis_6_2_says_it(message: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised, translated_errors():
        raise ResponseError(message)
    assert type(raised.value) is error
