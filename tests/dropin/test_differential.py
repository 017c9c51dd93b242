"""The differential test itself: two redis-servers are alike, and each deliberate mistake of a server is found."""

import pytest

import bodies
import differential
import programs
import sides


def found_in(subject, resp, count, seed=1):
    model = sides.Redis()
    try:
        return differential.differences(differential.Pair(model, subject, resp), programs.KINDS, seed, count)
    finally:
        subject.close()
        model.close()


@pytest.mark.parametrize("resp", (2, 3))
def test_the_model_is_like_itself(resp):
    found = found_in(sides.Redis(), resp, 8)
    assert not found, found[0].text()


@pytest.mark.parametrize("mistake", sides.MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_found(mistake):
    found = found_in(sides.Wrong(mistake()), 2, 30)
    assert found, "nobody notices: %s" % mistake.__doc__
    assert found[0].last[1] != found[0].last[2]


def test_the_scripts_by_hand():
    """Each by a name of its own, and each in the programs."""
    every = bodies.all_bodies()
    names = [body.name for body in every]
    assert len(names) == len(set(names)) >= 50
    count = programs.SEEDS_FOR_EACH_SCRIPT
    said = [step.argv[1] for seed in range(count) for step in programs.Program("each_script", seed, 0).steps
            if str(step.argv[0]).startswith("EVAL")]
    assert {body.text for body in every} <= set(said)
