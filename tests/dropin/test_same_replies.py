"""What a redis-server replies, holdfast replies: programs of several clients, scripts by hand and made at random."""

import os

import pytest

import differential
import programs
import sides

SEED = int(os.environ.get("DROPIN_SEED", "1"))
COUNT = int(os.environ.get("DROPIN_PROGRAMS", programs.SEEDS_FOR_EACH_SCRIPT))


@pytest.mark.parametrize("resp", (2, 3), ids=("RESP2", "RESP3"))
@pytest.mark.parametrize("masters,brokers", ((1, 1), (3, 1), (1, 2), (3, 2)),
                         ids=("one", "three", "two_brokers", "two_brokers_three"))
def test_same_replies(model, masters, brokers, resp):
    subject = sides.Holdfast(masters, brokers)
    try:
        pair = differential.Pair(model, subject, resp)
        found = differential.differences(pair, programs.KINDS, SEED + 1000 * resp + 100 * masters + 10 * brokers, COUNT)
        pair.hang_up()
        assert not found, "%s\n%s" % (found[0].text(), subject.log())
    finally:
        subject.close()
