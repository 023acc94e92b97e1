"""The differences between two plans, in words."""

from dataclasses import fields, replace
from datetime import timedelta

from roundsman.definition.plan import NOT_STORED, Plan, StepPlan
from roundsman.definition.plan_differences import (
    PlanDifference,
    differences,
    step_fields,
    workflow_fields,
)
from roundsman.definition.workflow import (
    Archive,
    Compensation,
    Retry,
    Signal,
    Sleep,
    SleepUntil,
    Undo,
    Wait,
)
from roundsman.model.priority import Priority
from tests.support.machine_world import plan, step


def sentences(*found: PlanDifference) -> list[str]:
    return [difference.sentence for difference in found]


def test_the_same_definition_has_no_differences() -> None:
    made = plan(step("a"), step("b", "a"))
    assert differences(made, plan(step("a"), step("b", "a"))) == ()


def test_steps_are_added_and_removed() -> None:
    old = plan(step("a"), step("b", "a"), step("z"))
    new = plan(step("x", agent="new"), step("a"), step("c", "x", "a"))
    assert differences(old, new) == (
        PlanDifference("removed", "b", "b is removed"),
        PlanDifference("removed", "z", "z is removed"),
        PlanDifference("added", "x", "x is added at the beginning, at new"),
        PlanDifference("added", "c", "c is added after x, a, at worker"),
    )


def test_every_field_of_a_step_is_compared() -> None:
    old = step("a")
    new = replace(
        old,
        agent="",
        agents=("one", "two"),
        after=("b",),
        complete_within=timedelta(seconds=90.5),
        retry=Retry(max_attempts=1, not_on=("Declined", "Gone")),
        compensation=Compensation(
            complete_within=timedelta(minutes=5), retry=Retry(max_attempts=2)
        ),
        on_failure=Wait(timedelta(minutes=1), times=2, then=Undo()),
        when="input.wanted",
        result_limit=100,
        heartbeat_within=timedelta(seconds=9),
        for_each="input.lines",
        tolerate=0.25,
        reads=("lines", "total"),
        result_masked=True,
    )
    b = step("b")
    found = differences(plan(old, b), plan(new, b))
    assert {(each.change, each.step) for each in found} == {("changed", "a")}
    assert sentences(*found) == [
        "a: agents: worker, now one, two",
        "a: after: none, now b",
        "a: complete_within: 30 s, now 90.5 s",
        "a: retry: 3 attempts, delays from 1 s to 300 s, now 1 attempt, delays from 1 s to 300 s, "
        "not on Declined or Gone",
        "a: compensation: none, now within 300 s, 2 attempts, delays from 1 s to 300 s, does not "
        "fence late performs",
        "a: on_failure: archive, now wait 60 s, 2 times, then undo",
        "a: when: none, now input.wanted",
        "a: result_limit: 32768 bytes, now 100 bytes",
        "a: heartbeat_within: none, now 9 s",
        "a: for_each: none, now input.lines",
        "a: tolerate: 0, now 0.25",
        "a: reads: all, now lines, total",
        "a: result_masked: no, now yes",
    ]


def test_no_field_of_a_plan_is_forgotten() -> None:
    made = plan(step("a"))
    of_step = {each.name for each in fields(StepPlan)} - {"name", *NOT_STORED}
    of_step = of_step - {"enough_before"} | {"enough of after"}  # as an author may read it
    assert set(step_fields(made.steps["a"])) == of_step
    of_plan = {each.name for each in fields(Plan)}
    of_plan -= {"workflow", "steps", "text", "stored", "fan_outs", "added"}
    of_plan -= {"closing", "end"}  # its closing steps are compared as steps
    of_plan -= {"kinds", "kinds_after_no_return"}  # by their names in a workflow:
    of_plan |= {"may_add", "may_add_after_no_return"}
    assert set(workflow_fields(made)) == of_plan


def test_the_signal_of_a_step_and_its_time_are_compared() -> None:
    a, paid = step("a"), Signal("paid", within=timedelta(minutes=1))
    (added,) = differences(plan(a), plan(a, replace(paid, after=(a,))))
    assert added.sentence == "paid is added after a, a signal"
    other = Signal("settled", name="paid", within=timedelta(minutes=2))
    assert sentences(*differences(plan(paid), plan(other))) == [
        "paid: awaits: the signal paid within 60 s, now the signal settled within 120 s",
    ]


def test_the_time_of_a_sleep_is_compared() -> None:
    a, nap = step("a"), Sleep(name="nap", for_=timedelta(minutes=1))
    (added,) = differences(plan(a), plan(a, replace(nap, after=(a,))))
    assert added.sentence == "nap is added after a, a sleep"
    (longer,) = sentences(*differences(plan(nap), plan(replace(nap, for_=timedelta(minutes=2)))))
    assert longer == "nap: awaits: a sleep of 60 s, now a sleep of 120 s"
    until = SleepUntil("input.departure", name="nap")
    assert sentences(*differences(plan(nap), plan(until))) == [
        "nap: awaits: a sleep of 60 s, now a sleep until input.departure",
    ]


def test_a_compensation_that_fences_says_so() -> None:
    a = step("a", compensation=Compensation(retry=Retry(max_attempts=2)))
    fenced = Compensation(retry=Retry(max_attempts=2), fences_late_performs=True)
    (sentence,) = sentences(*differences(plan(a), plan(replace(a, compensation=fenced))))
    assert sentence.endswith("fences late performs")
    assert "does not fence" in sentence


def test_a_compensation_with_a_lifetime_of_its_key_says_so() -> None:
    a = step("a", compensation=Compensation())
    short = Compensation(key_lifetime=timedelta(days=1))
    (sentence,) = sentences(*differences(plan(a), plan(replace(a, compensation=short))))
    assert sentence == "a: key_lifetime: none, now 86400 s"


def test_the_fields_of_the_workflow_are_compared() -> None:
    a = step("a", on_failure=Archive())
    new = plan(
        a,
        complete_within=timedelta(hours=2),
        on_failure=Undo(),
        retain_for=timedelta(days=1),
        priority=Priority.URGENT,
        point_of_no_return=a,
        masked=("card.number", "pins.*.pin"),
    )
    found = differences(plan(a), new)
    assert {(each.change, each.step) for each in found} == {("changed", None)}
    assert sentences(*found) == [
        "the workflow: complete_within: 3600 s, now 7200 s",
        "the workflow: on_failure: archive, now undo",
        "the workflow: retain_for: 0 s, now 86400 s",
        "the workflow: priority: normal, now urgent",
        "the workflow: point_of_no_return: none, now a",
        "the workflow: masked: none, now card.number, pins.*.pin",
    ]


def test_kinds_of_steps_that_may_be_added_are_compared_as_steps_are() -> None:
    a, leg, note = step("a"), step("leg"), step("note")
    old = plan(a, may_add=(leg,))
    new = plan(
        a,
        may_add=(step("leg", result_limit=100), note),
        most_added=9,
        point_of_no_return=a,
        may_add_after_no_return=(note,),
    )
    assert sentences(*differences(old, new)) == [
        "the workflow: point_of_no_return: none, now a",
        "the workflow: may_add: leg, now leg, note",
        "the workflow: most_added: 1000, now 9",
        "the workflow: may_add_after_no_return: none, now note",
        "leg: result_limit: 32768 bytes, now 100 bytes",
        "note is added to the kinds of steps that may be added, at worker",
    ]
    assert sentences(*differences(old, plan(a)))[-1] == "leg is removed"


def test_an_expanded_plan_is_compared_as_it_is_stored() -> None:
    made = plan(step("pick", for_each="input.lines"))
    assert differences(made.expanded({"pick": 2}), made.expanded({"pick": 3})) == ()
