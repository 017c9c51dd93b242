"""The lock libraries of PyPI, Maven Central, the Go proxy and crates.io, and those that bring much of Debian with them."""

import pytest

from library_programs import crates, go, hold_scripts_to_the_model, hold_to_the_model, maven, php, pypi

LIBRARIES = [
    ("laravel", php, None),
    ("redis_py", pypi, None),
    ("redis_py_async", pypi, None),
    ("valkey_py", pypi, None),
    ("valkey_py_async", pypi, None),
    ("redlock_py", pypi, None),
    ("pottery", pypi, None),
    ("aioredlock", pypi, None),
    ("python_redis_lock", pypi, "wakes its waiters by a list"),
    ("jedis", maven, None),
    ("lettuce", maven, None),
    ("redisson", maven, None),
    ("spring_lettuce", maven, None),
    ("spring_jedis", maven, None),
    ("spring_pubsub", maven, None),
    ("shedlock_jedis", maven, None),
    ("shedlock_spring", maven, None),
    ("redsync_goredis", go, None),
    ("redsync_redigo", go, None),
    ("redislock", go, None),
    ("rslock", crates, None),
]


@pytest.mark.parametrize("library,program,why_not", LIBRARIES)
def test_library(library, program, why_not, model, recorder, one, three):
    hold_to_the_model(program, library, why_not, model, [one, three])


def test_recorded_scripts(model, recorder, one, three):
    """What they were seen to send replies the same in any state."""
    hold_scripts_to_the_model(recorder.scripts(), model, [one, three])
