"""Time that a task gets back: its complete-by moves by the time in which nobody could attempt it.

That is the time for which its steps were parked or awaited a result, and the time for which its
messages waited because a function was behind or down. `Task.credited_until` is the end of what was
given back, so that no time is given back twice, whatever was the cause. A task that is ending gets
no more time.
"""

from dataclasses import replace

from roundsman.engine.decision import DecisionBuilder


def credit(decision: DecisionBuilder, since: int, until: int) -> None:
    """Give back the time from `since` to `until` (epoch ms), except what was given back before."""
    if decision.ending is not None:
        return
    task = decision.task
    start = since if task.credited_until is None else max(since, task.credited_until)
    if until > start:
        by = task.complete_by + until - start
        decision.task = replace(task, complete_by=by, credited_until=until)


def credit_holds(decision: DecisionBuilder) -> None:
    """Give back the time for which steps have been parked, or have awaited a result, until now.

    Call it before the deadline is checked, so that neither can make the task fail.
    """
    records = decision.steps.values()
    since = [r.held_since for r in records if r.held_since is not None]
    since += [r.finished_at for r in records if r.awaits_result and r.finished_at is not None]
    if since:
        credit(decision, min(since), decision.now)
        decision.credit_alone()
