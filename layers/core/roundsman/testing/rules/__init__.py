"""The rules that hold for the template of every application of this engine.

A rule is a function of an `Application` that returns its problems as sentences. No rule knows the
names of agents, workflows or services: it reads them from the template and the code. `roundsman
check` and the pytest fixture `roundsman_check` run them all.
"""

from roundsman.testing.rules import (
    alarms,
    code,
    dashboards,
    encryption,
    functions,
    interface,
    limits,
    permissions,
    queues,
    schedules,
    tables,
    versions,
)
from roundsman.testing.rules.application import Application, Rule

__all__ = ["RULES", "Application", "Rule"]

RULES: tuple[Rule, ...] = (
    *queues.RULES,
    *functions.RULES,
    *permissions.RULES,
    *tables.RULES,
    *encryption.RULES,
    *alarms.RULES,
    *dashboards.RULES,
    *interface.RULES,
    *limits.RULES,
    *code.RULES,
    *schedules.RULES,
    *versions.RULES,
)
