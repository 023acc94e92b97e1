"""The rules that hold for the template of every application of this engine.

A rule is a function of an `Application` that returns its problems as sentences. It judges what an
application writes itself: its blocks, outputs, layers, schedules and code. The stacks of the engine
are not judged; nobody edits them. No rule knows the names of agents, workflows or services: it
reads them from the template and the code. `roundsman check` and the pytest fixture
`roundsman_check` run them all.
"""

from roundsman_dev.check import blocks, code, events, interface, limits, schedules, service_events
from roundsman_dev.check.application import Application, Rule

__all__ = ["RULES", "Application", "Rule"]

RULES: tuple[Rule, ...] = (
    *blocks.RULES,
    *interface.RULES,
    *limits.RULES,
    *code.RULES,
    *schedules.RULES,
    *events.RULES,
    *service_events.RULES,
)
