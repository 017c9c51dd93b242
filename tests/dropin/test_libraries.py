"""Lock libraries, unmodified: what their programs say on a redis-server they say on holdfast, on one master and on three.

Here those of Debian and npm; test_more_libraries.py has those of the other registries.
"""

import pytest

from library_programs import debian_python, hold_scripts_to_the_model, hold_to_the_model, npm, php

# (library, how it is called, why it cannot be served; None where it must be)
LIBRARIES = [
    ("redis_py", debian_python, None),
    ("redis_py_async", debian_python, None),
    ("phpredis", php, None),
    ("predis", php, None),
    ("symfony", php, "keeps its owners in a sorted set"),
    ("redlock4", npm, None),
    ("redlock5", npm, None),
    ("sesamecare", npm, None),
    ("redisSemaphore", npm, None),
    ("ioredisLock", npm, None),
    ("simpleRedisMutex", npm, "counts its tokens in a key that lives for ever"),
    ("redisLock", npm, None),
]


@pytest.mark.parametrize("library,program,why_not", LIBRARIES)
def test_library(library, program, why_not, model, recorder, one, three):
    hold_to_the_model(program, library, why_not, model, [one, three])


def test_recorded_scripts(model, recorder, one, three):
    """What they were seen to send replies the same in any state."""
    hold_scripts_to_the_model(recorder.scripts(), model, [one, three])
