"""on_error: what is refused when a workflow is imported, and what a plan stores of it."""

import json
from collections.abc import Mapping
from datetime import timedelta

import pytest

from roundsman.definition.plan import NEWEST_PLAN_VERSION, read_plan
from roundsman.definition.plan_differences import differences
from roundsman.definition.workflow import (
    ANY,
    Archive,
    ErrorPolicy,
    NextAgent,
    Retry,
    Skip,
    Undo,
    Wait,
)
from roundsman.errors import DefinitionError
from tests.support.fan_out_stories import FENCED
from tests.support.machine_world import plan, step

TWO = ("first", "second")
ALL: Mapping[str, ErrorPolicy] = {
    "Declined": Undo(),
    "Stolen": Archive(),
    "Closed": Wait(delay=timedelta(minutes=5), times=2),
    "Full": NextAgent(),
    "Unknown": Skip(),
    "Throttled": Retry(max_attempts=9),
    ANY: Undo(),
}


def test_a_plan_has_each_policy_and_reads_it_back() -> None:
    made = plan(step("a", agents=TWO, compensation=FENCED, on_error=ALL))
    assert json.loads(made.text)["planVersion"] == NEWEST_PLAN_VERSION
    again = read_plan(made.text)
    assert again == made
    assert [kind for kind, _ in again.steps["a"].on_error] == sorted(ALL)
    assert again.steps["a"].attempts is None, "an error may leave more attempts than another"


def test_a_plan_without_it_is_as_it_was() -> None:
    document = json.loads(plan(step("a")).text)
    assert document["planVersion"] == 1
    assert "onError" not in document["steps"][0]


def test_next_agent_on_any_needs_newer_code() -> None:
    made = plan(step("a", agents=TWO, compensation=FENCED, next_agent_on=(ANY,)))
    assert json.loads(made.text)["planVersion"] == NEWEST_PLAN_VERSION


def test_a_change_is_a_difference_of_plans() -> None:
    before = plan(step("a", on_error={"Declined": Undo()}))
    after = plan(step("a", on_error={"Declined": Undo(), "Unknown": Skip()}))
    assert [one.sentence for one in differences(before, after)] == [
        "a: on_error: Declined: undo, now Declined: undo, Unknown: skip"
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"on_error": ("Declined",)},
            'must be a mapping, such as {"CardDeclined": Undo()}, not',
        ),
        ({"on_error": {"": Undo()}}, "would never match"),
        ({"on_error": {"Declined": "undo"}}, "on_error of 'Declined' must be Undo(), Archive()"),
        ({"on_error": {"Full": NextAgent()}}, "NextAgent() in on_error needs several agents"),
        ({"on_error": {"T": Retry(not_on=("T",))}}, "on_error of 'T' has not_on"),
        (
            {"on_error": {"T": Retry()}, "retry": Retry(not_on=("T",))},
            "'T' is in not_on of retry and has a Retry in on_error; remove one of them",
        ),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_imported(
    options: Mapping[str, object], sentence: str
) -> None:
    with pytest.raises(DefinitionError) as raised:
        step("a", **options)  # type: ignore[arg-type]  # wrong on purpose
    assert sentence in str(raised.value)
