"""The scenarios of clients/scenarios as tests: each test_LANGUAGE.py asks for them with its agents."""

import pathlib
import tomllib

import pytest

from driver import Scenario

CLIENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "clients"

with open(CLIENTS / "scenarios" / "scenarios.toml", "rb") as text:
    TABLE = tomllib.load(text)["scenario"]


def scenario_test(agents, short=False, unable=()):
    """A test of each agent and scenario. agents: {name: function that gives (argv, environment) once it is built};
    short: only those that the table calls so; unable: words of the protocol of agents that none of these knows."""
    started = {}

    def runs():
        for name in agents:
            for table in TABLE:
                if (table.get("short") or not short) and not {step.get("do") for step in table["steps"]} & set(unable):
                    yield pytest.param(name, table, id="%s: %s" % (name, table["name"]))

    @pytest.mark.parametrize("agent,table", runs())
    def test_scenario(agent, table, tmp_path):
        if agent not in started:
            started[agent] = agents[agent]()
        Scenario(table, tmp_path, *started[agent]).run()
    return test_scenario
