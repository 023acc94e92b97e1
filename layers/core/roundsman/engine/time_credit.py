"""Time that a task gets back in a decision (`roundsman.model.credit`).

That is the time for which its steps were parked or awaited a result, and the time for which its
messages waited because a function was behind or down.
"""

from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.model.credit import credited, stands_since


def credit(decision: DecisionBuilder, since: int, until: int) -> None:
    """Give back the time from `since` to `until` (epoch ms), except what was given back before."""
    if decision.ending is None:
        decision.task = credited(decision.task, since, until)


def credit_holds(decision: DecisionBuilder) -> None:
    """Give back the time for which steps have been parked, or have awaited a result, until now.

    Call it before the deadline is checked, so that neither can make the task fail.
    """
    since = stands_since(decision.steps.values())
    if since is not None:
        credit(decision, since, decision.now)
        decision.credit_alone()
