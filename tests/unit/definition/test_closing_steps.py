"""Closing steps of a workflow: what it takes, what it refuses at import, and what a plan has."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import (
    AnyOf,
    Archive,
    Compensation,
    DefinitionError,
    Retry,
    Skip,
    Sleep,
    Step,
    Wait,
    Workflow,
)
from roundsman.definition.plan import ArchivePlan, plan_of, read_plan
from roundsman.definition.plan_differences import differences

MINUTE = timedelta(minutes=1)
CHARGE = Step(name="charge", agent="payment", complete_within=MINUTE)
TELL = Step(name="tell", agent="mail", complete_within=MINUTE)
PLAIN = Workflow(name="shop", steps=(CHARGE,), complete_within=30 * MINUTE)


def test_a_plan_has_them_by_end_and_one_without_keeps_its_hash_and_its_version() -> None:
    log = replace(TELL, name="log", after=(TELL,))
    made = plan_of(replace(PLAIN, when_undone=(TELL, log), when_failed=(TELL,)))
    assert {end: list(steps) for end, steps in made.closing.items()} == {
        "Undone": ["tell", "log"],
        "Archived": ["tell"],
    }
    assert read_plan(made.text) == made
    assert json.loads(made.text)["planVersion"] == 7, "older code would end without them"
    assert made.agents == {"payment", "mail"}
    assert "closing" not in json.loads(plan_of(PLAIN).text)
    assert json.loads(plan_of(PLAIN).text)["planVersion"] == 1


def test_a_number_limits_their_attempts_and_their_failure_changes_nothing() -> None:
    waits = Wait(delay=MINUTE, times=3)
    made = plan_of(replace(PLAIN, on_failure=waits, when_failed=(TELL,)))
    step = made.closing["Archived"]["tell"]
    assert (step.retry.max_attempts, step.retry.keep_trying_for) == (3, 0)
    assert (step.on_failure, step.closes) == (ArchivePlan(), True)


def test_they_are_steps_of_the_plan_only_at_their_end() -> None:
    made = plan_of(replace(PLAIN, when_undone=(TELL,)))
    assert list(made.steps) == ["charge"]
    assert list(made.ending_as("Undone").steps) == ["charge", "tell"]
    assert made.ending_as("Undone") is made.ending_as("Undone")
    assert list(made.ending_as("Cancelled").steps) == ["charge"]
    assert made.defined("tell") == made.closing["Undone"]["tell"]


def test_a_difference_names_the_end() -> None:
    before = plan_of(replace(PLAIN, when_undone=(TELL,)))
    slower = replace(TELL, complete_within=2 * MINUTE)
    after = plan_of(replace(PLAIN, when_undone=(slower,), when_failed=(slower,)))
    assert [one.sentence for one in differences(before, after)] == [
        "tell (when Archived) is added, at mail",
        "tell (when Undone): complete_within: 60 s, now 120 s",
    ]


@pytest.mark.parametrize(
    ("closing", "says"),
    [
        (
            lambda: Sleep(name="nap", for_=MINUTE),
            "only waits; a closing step is performed by an agent",
        ),
        (lambda: replace(TELL, compensation=Compensation()), "has compensation"),
        (lambda: replace(TELL, on_failure=Archive()), "has on_failure"),
        (lambda: replace(TELL, on_error={"Declined": Skip()}), "has on_error"),
        (lambda: replace(TELL, for_each="input.lines"), "has for_each"),
        (lambda: replace(TELL, otherwise=None), "has otherwise"),
        (lambda: replace(TELL, retry=Retry(keep_trying_for=MINUTE)), "give max_attempts"),
        (lambda: replace(TELL, after=("charge",)), "no closing step of this end"),
        (lambda: replace(TELL, after=AnyOf("charge")), "without AnyOf"),
        (lambda: replace(TELL, when="results.gone"), "no step has that name"),
        (
            lambda: replace(TELL, name="charge"),
            "two steps are named 'charge'|another step is named",
        ),
        (lambda: CHARGE, "two steps are named 'charge'|is a step of the workflow already"),
    ],
)
def test_one_that_can_never_run_or_would_change_the_end_is_refused_at_import(
    closing: Callable[[], Step], says: str
) -> None:
    with pytest.raises(DefinitionError, match=says):
        replace(PLAIN, when_undone=(closing(),))


def test_two_of_one_name_are_refused_at_import() -> None:
    with pytest.raises(DefinitionError, match="two steps have the same name"):
        replace(PLAIN, when_undone=(TELL, TELL))
    with pytest.raises(DefinitionError, match="another step is named 'tell'"):
        replace(PLAIN, when_undone=(TELL,), when_failed=(replace(TELL, agent="sms"),))
    assert replace(PLAIN, when_undone=(TELL,), when_failed=(TELL,)).closing_steps


def test_a_circle_is_refused_at_import() -> None:
    log = replace(TELL, name="log", after=("tell",))
    with pytest.raises(DefinitionError, match="form a cycle"):
        replace(PLAIN, when_undone=(replace(TELL, after=("log",)), log))


def test_too_many_are_refused_at_import() -> None:
    many = tuple(replace(TELL, name=f"tell{number}") for number in range(100))
    with pytest.raises(DefinitionError, match="at most 100 fit in one task"):
        replace(PLAIN, when_undone=many)
