"""What the doctor finds wrong with tasks, and what it leaves alone."""

from dataclasses import replace

import pytest

from roundsman.model.instants import MINUTE, SECOND, iso
from roundsman.model.states import ProcessState
from roundsman.model.task import Owed, Task
from roundsman_console.facts.finding.orders import order_without_task
from roundsman_console.facts.finding.report import in_order
from roundsman_console.facts.finding.table import Severity
from roundsman_console.facts.finding.tasks import findings, spans
from tests.console.doctor_samples import (
    GROUP,
    HEALTHY,
    HOUR,
    WELL,
    archived,
    done,
    of,
    visited,
    with_tasks,
)
from tests.contract.samples import NOW, PLAN, born, claimed, owing
from tests.support.steps import step_record


def with_step(**changes: object) -> Task:
    """A task whose first step is under way, but for that."""
    task = claimed(born())
    step = replace(task.step("reserve_stock"), **changes)  # type: ignore[arg-type]  # likewise
    return replace(task, steps={"reserve_stock": step})


def test_tasks_of_an_ordinary_life_are_well() -> None:
    assert of(with_tasks(*HEALTHY)) == {}


def test_a_step_that_is_overdue_by_more_than_two_rounds_is_stuck() -> None:
    task = claimed(born())  # to be done within 30 s
    two_rounds = NOW + 30 * SECOND + 2 * MINUTE
    assert of(with_tasks(task, now=two_rounds)) == {}
    found = of(with_tasks(task, now=two_rounds + SECOND))["task-stuck"]
    assert found.where == "ord-1001"
    assert found.evidence.startswith("reserve_stock overdue since 14:13:50 (2 min); shard 8 last")
    assert found.command == "roundsman show ord-1001"
    assert found.fixable


def test_an_instant_of_another_day_has_its_date() -> None:
    task = claimed(born())
    facts = replace(with_tasks(task, now=NOW + 48 * HOUR), leases=visited(NOW + 24 * HOUR))
    evidence = of(facts)["task-stuck"].evidence
    date, overdue = iso(NOW + 24 * HOUR), iso(NOW + 30 * SECOND)
    assert evidence.startswith(f"reserve_stock overdue since {overdue} (47 h 59 min)")
    assert evidence.endswith(f"shard {task.shard} last visited {date}")


def test_a_task_whose_start_was_lost_is_stuck_by_its_stored_entry() -> None:
    lost = born()
    assert of(with_tasks(lost, now=lost.due_at + 2 * MINUTE)) == {}
    assert "task-stuck" in of(with_tasks(lost, now=lost.due_at + 3 * MINUTE))


def test_what_is_over_is_never_stuck_however_old() -> None:
    assert of(with_tasks(done(), archived(), now=NOW + 24 * HOUR)) == {}


def test_an_entry_that_is_merely_early_sticks_nowhere() -> None:
    task = replace(claimed(born(), within=HOUR), due_at=NOW)
    assert of(with_tasks(task, now=NOW + 10 * MINUTE)) == {}


def test_the_finding_of_a_stuck_task_names_who_holds_the_shard() -> None:
    task = claimed(born())
    now = NOW + HOUR
    leases = visited(now).taken("7f3a", [task.shard], now + 10 * SECOND)
    found = of(replace(with_tasks(task, now=now), leases=leases))["task-stuck"]
    assert "held by 7f3a until 15:13:30" in found.evidence
    unseen = of(replace(with_tasks(task, now=now), leases=None))["task-stuck"]
    assert unseen.evidence.endswith(f"; shard {task.shard}")


def test_what_has_no_plan_is_not_inspected_since_that_would_archive_it() -> None:
    facts = replace(with_tasks(claimed(born()), now=NOW + HOUR), plans={PLAN.hash: "not stored"})
    found = of(facts)
    assert not found["task-stuck"].fixable
    assert found["plan-missing"].evidence == (
        "not stored; named by 1 task of order_fulfilment, such as ord-1001"
    )


def test_an_entry_that_was_put_off_for_its_trouble_is_found() -> None:
    late = replace(claimed(born()), due_at=NOW + HOUR)
    found = of(replace(WELL, tasks=[late], troubled={"ord-1001": 2}))
    assert set(found) == {"record-troubled"}
    assert found["record-troubled"].evidence.startswith("failed 2 times; next tried at 2026")


def test_what_is_owed_for_minutes_is_reported_as_unsent() -> None:
    task = owing(born(), "received")
    assert "owed-unsent" not in of(with_tasks(task, now=NOW + 5 * MINUTE))
    found = of(with_tasks(task, now=NOW + 6 * MINUTE))["owed-unsent"]
    assert found.evidence == "status received, since 14:13:20 (6 min)"
    assert found.fixable


def test_a_task_whose_record_breaks_the_supervisor_is_not_inspected() -> None:
    facts = with_tasks(owing(claimed(born()), "started"), now=NOW + HOUR)
    assert of(facts)["task-stuck"].fixable
    assert of(facts)["owed-unsent"].fixable
    troubled = of(replace(facts, troubled={"ord-1001": 1}))
    assert "failed once" in troubled["record-troubled"].evidence
    assert not troubled["task-stuck"].fixable
    assert not troubled["owed-unsent"].fixable


def test_a_record_that_cannot_be_read_is_found_with_the_reason() -> None:
    found = of(replace(WELL, unreadable={"ord-1": "format 99; this code reads 6"}))
    assert found["record-unreadable"].where == "ord-1"
    assert found["record-unreadable"].evidence == "format 99; this code reads 6"


def test_a_plan_that_was_altered_is_found_once_for_all_its_tasks() -> None:
    why = "not the text that has this hash"
    facts = replace(with_tasks(born("ord-1"), born("ord-2")), plans={PLAN.hash: why})
    (found,) = findings(facts)
    assert found.kind == "plan-missing"
    assert found.evidence.startswith(why)
    assert found.where == PLAN.hash[:12]
    assert "named by 2 tasks" in found.evidence


def test_an_agent_that_the_stack_has_no_queue_for_is_found_while_a_step_needs_it() -> None:
    facts = replace(with_tasks(claimed(born())), agents=("inventory", "payment", "mail"))
    found = of(facts)["agent-without-queue"]
    assert found.where == "shipping"
    assert found.evidence == "create_shipment of 1 open task, such as ord-1001"
    over = replace(facts, tasks=[archived()])
    assert of(over) == {}
    step = step_record(process_state=ProcessState.PROCESSED, started_at=NOW, finished_at=NOW)
    shipped = {**claimed(born()).steps, "create_shipment": step}
    assert of(replace(facts, tasks=[replace(claimed(born()), steps=shipped)])) == {}


def test_what_needs_a_person_and_is_in_no_open_group_is_found() -> None:
    facts = with_tasks(archived(), replace(archived(), task_id="ord-2"))
    assert of(facts) == {}
    found = of(replace(facts, groups=()))
    assert set(found) == {"group-not-open"}
    assert found["group-not-open"].where == GROUP.id
    assert found["group-not-open"].evidence == "2 tasks of order_fulfilment, such as ord-1001"
    overflow = replace(GROUP, id="f-0v3rf10w", overflow=True)
    assert of(replace(facts, groups=[overflow])) == {}
    elsewhere = replace(overflow, workflow="returns")
    assert "group-not-open" in of(replace(facts, groups=[elsewhere]))
    assert of(replace(facts, groups=None)) == {}


def test_what_has_still_to_alert_has_its_group_still_to_open() -> None:
    alert = Owed("alert", "task_archived", 5, NOW, "")
    task = replace(archived(), owed=(alert,), lane="open#8", due_at=NOW)
    assert of(replace(with_tasks(task), groups=())) == {}


def test_an_order_without_task_is_lost_only_where_no_retention_explains_it() -> None:
    (found,) = order_without_task("ord-7", NOW - HOUR, 2 * HOUR, NOW)
    assert (found.kind, found.where) == ("order-without-task", "ord-7")
    assert list(order_without_task("ord-8", NOW - 2 * HOUR, 2 * HOUR, NOW)) == []
    assert list(order_without_task("ord-7", NOW - HOUR, None, NOW)) == []


def test_the_worst_comes_first() -> None:
    task = owing(claimed(born()), "started")
    facts = with_tasks(task, now=NOW + HOUR)
    severities = [one.kind.severity for one in in_order(findings(facts))]
    assert severities == sorted(severities, key=list(Severity).index)
    assert severities == [Severity.CRITICAL, Severity.WARNING]


def test_shards_that_no_supervisor_visits_are_found() -> None:
    assert of(replace(WELL, leases=visited(NOW - 120 * SECOND))) == {}
    found = of(replace(WELL, leases=visited(NOW - 121 * SECOND)))["supervisor-late"]
    assert found.where == "shard 0-15"
    assert "2 min ago" in found.evidence
    assert of(replace(WELL, leases=None)) == {}


def test_of_a_stack_that_was_just_made_no_round_is_expected() -> None:
    never = visited(0)
    assert of(replace(WELL, leases=never, stack_created_at=NOW - MINUTE)) == {}
    assert "never visited" in of(replace(WELL, leases=never))["supervisor-late"].evidence


@pytest.mark.parametrize("kind", ["operator", "breaker"])
def test_a_hold_that_cannot_be_read_is_found_with_its_release(kind: str) -> None:
    parts = {("holds", f"payment/{kind}.Until"): "is not a whole number"}
    found = of(replace(WELL, unreadable_parts=parts))["control-unreadable"]
    assert found.where == f"holds: payment/{kind}.Until"
    assert found.evidence == "is not a whole number"
    assert found.command == "roundsman release payment"
    nobodys = replace(WELL, unreadable_parts={("holds", "payment.Since"): "is missing"})
    assert of(nobodys)["control-unreadable"].command is None


def test_a_supervisor_on_longer_rounds_is_given_longer() -> None:
    leases = visited(NOW - HOUR)
    assert of(replace(WELL, leases=leases, interval=30 * MINUTE)) == {}


def test_shards_that_were_used_before_their_number_was_lowered_are_looked_for() -> None:
    leases = replace(visited(NOW), shards=18)
    assert of(replace(WELL, leases=leases))["supervisor-late"].where == "shard 16-17"


def test_shards_are_printed_in_ranges() -> None:
    assert spans([0, 1, 2, 7, 9]) == "0-2, 7, 9"
