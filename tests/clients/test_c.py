"""libholdfast: the table of scenarios."""

import os

from table import scenario_test

AGENT = os.path.join(os.path.dirname(os.path.abspath(os.environ["HOLDFAST"])), "clients", "c", "agent")

test_scenario = scenario_test({"c": lambda: ([AGENT], {})})
