"""What the engine stores breaks no promise, in any story and after any decision of it."""

import pytest

from roundsman.definition.plan import Plan
from roundsman.model.events import Decision, Event, HistoryRow
from roundsman.model.instants import DAY, MINUTE
from roundsman.model.task import Task
from roundsman_console.facts.audit.checks import judge
from roundsman_console.facts.audit.promises import Promise
from tests.support import machine_world
from tests.support.machine_checks import check
from tests.unit.console.audit.stored import stored
from tests.unit.engine.test_transitions import STORIES


@pytest.mark.parametrize("number", range(len(STORIES)))
def test_no_decision_of_a_story_seems_to_break_a_promise(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories: dict[int, list[HistoryRow]] = {}
    judged = 0

    def audit(plan: Plan, before: Task, event: Event, decision: Decision, now: int) -> None:
        nonlocal judged
        check(plan, before, event, decision, now)
        history = histories.setdefault(before.created_at, [])
        history += decision.history
        for later in (0, MINUTE, DAY):
            order = stored(decision.task, plan, history, now + later)
            # It does not end if nobody comes for a day.
            found = [
                f"{promise.name}: {one.what}"
                for promise, one in judge(order).broken
                if not (later == DAY and promise is Promise.ENDS)
            ]
            assert found == [], (event, decision.reason)
        judged += 1

    monkeypatch.setattr(machine_world, "check", audit)
    STORIES[number]()
    assert judged
