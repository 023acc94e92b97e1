"""What a step goes on with that nobody answers: what is refused at import, and how it is stored."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import DefinitionError, Json, Signal, SleepUntil, Step
from roundsman.definition.plan import OTHERWISE_PLAN_VERSION, Otherwise, read_plan
from roundsman.definition.plan_differences import differences
from roundsman.definition.workflow import FAIL
from roundsman.model.record_limits import LARGEST_SIGNAL
from tests.support.machine_world import plan, step, workflow

A_DAY = timedelta(days=1)
paid = Signal("paid", within=A_DAY, otherwise={"amount": 0})


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"a": [1, None]}])
def test_any_json_is_stored_and_read_back(value: Json) -> None:
    made = plan(step("a", otherwise=value), complete_within=A_DAY)
    assert made.steps["a"].otherwise == Otherwise(value)
    assert read_plan(made.text) == made
    assert json.loads(made.text)["planVersion"] == OTHERWISE_PLAN_VERSION


def test_a_signal_has_one_too() -> None:
    made = plan(paid, complete_within=3 * A_DAY)
    assert made.steps["paid"].otherwise == Otherwise({"amount": 0})
    assert read_plan(made.text) == made


def test_a_plan_without_it_is_stored_as_before() -> None:
    made = plan(step("a"))
    assert "otherwise" not in made.text
    assert made.steps["a"].otherwise is None
    assert json.loads(made.text)["planVersion"] == 1


def test_a_kind_of_added_steps_may_have_one() -> None:
    made = plan(step("a"), may_add=(step("more", otherwise=1),))
    assert made.kinds["more"].otherwise == Otherwise(1)
    assert json.loads(made.text)["planVersion"] == OTHERWISE_PLAN_VERSION


def test_a_step_with_one_can_be_a_key_as_any_step() -> None:
    made = plan(step("a", otherwise={"x": 1}))
    assert hash(step("a", otherwise={"x": 1})) == hash(step("a", otherwise={"x": 1}))
    assert hash(made.steps["a"]) == hash(replace(made.steps["a"]))
    assert step("a", otherwise=1) != step("a", otherwise=2)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({1, 2}, "otherwise must be JSON; "),
        (float("nan"), "otherwise must be JSON; "),
        ("x" * 4_096, "otherwise has 4098 bytes; at most 100 fit"),
    ],
)
def test_what_is_no_json_or_too_long_is_refused(value: object, why: str) -> None:
    with pytest.raises(DefinitionError, match=f"step 'a': {why}"):
        step("a", otherwise=value, result_limit=100)


def test_that_of_a_signal_is_at_most_as_long_as_its_data() -> None:
    Signal("paid", within=A_DAY, otherwise="x" * (LARGEST_SIGNAL - 2))
    with pytest.raises(DefinitionError, match=f"otherwise has {LARGEST_SIGNAL + 1} bytes; at most"):
        Signal("paid", within=A_DAY, otherwise="x" * (LARGEST_SIGNAL - 1))


def made(*steps: Step, **more: object) -> None:
    workflow(*steps, complete_within=10 * A_DAY, **more)  # type: ignore[arg-type]  # a test's own shorthand


def test_later_steps_may_ask_whether_the_answer_came() -> None:
    made(paid, step("b", paid, when="came.paid && results.paid.amount > `0`"))


def test_only_of_a_step_that_goes_on_without_it_can_be_asked_whether_it_came() -> None:
    with pytest.raises(
        DefinitionError, match=r"reads came\.a, which is always true: 'a' has no otherwise"
    ):
        made(step("a"), step("b", "a", when="came.a"))


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ((), "reads the result of 'paid', which may come later; add it to after"),
        (("paid",), ""),
    ],
)
def test_it_can_be_asked_only_of_steps_before(after: tuple[str, ...], why: str) -> None:
    steps = (paid, step("b", *after, when="came.paid"))
    if not why:
        made(*steps)
        return
    with pytest.raises(DefinitionError, match=why):
        made(*steps)


def test_a_kind_that_is_added_cannot_ask() -> None:
    with pytest.raises(DefinitionError, match="it can read only the input of the order"):
        made(paid, may_add=(SleepUntil("came.paid", name="nap"),))


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("results.paid.amount", True),
        ("results.paid.lines", True),
        ("results.paid.lines || `[]`", False),
        ("[results.paid.amount]", False),
        ("results.paid.lines[*].sku || input.lines", False),  # what the input has is not known
    ],
)
def test_a_list_must_be_there_also_if_nobody_answers(expression: str, refused: bool) -> None:
    each = step("each", paid, for_each=expression)
    if not refused:
        made(paid, each)
        return
    with pytest.raises(DefinitionError, match="cannot read the otherwise of paid: for_each"):
        made(paid, each)


def test_an_instant_must_be_there_also_if_nobody_answers() -> None:
    with pytest.raises(DefinitionError, match="cannot read the otherwise of paid: until"):
        made(paid, SleepUntil("results.paid.amount", name="nap", after=(paid,)))
    at = replace(paid, otherwise={"at": "2027-01-15T08:00:00Z"})
    made(at, SleepUntil("results.paid.at", name="nap", after=(at,)))


def test_a_list_that_reads_an_answer_which_must_come_is_not_judged() -> None:
    made(step("a"), step("each", "a", for_each="results.a"))
    made(step("a"), paid, step("each", "a", "paid", for_each="results.a || results.paid"))


def test_a_newer_plan_says_what_it_goes_on_with() -> None:
    before = plan(step("a"), complete_within=A_DAY)
    after = plan(step("a", otherwise={"b": 1}), complete_within=A_DAY)
    [found] = differences(before, after)
    assert found.sentence == 'a: otherwise: none, now {"b":1}'


def test_without_it_a_step_fails() -> None:
    assert step("a").otherwise is FAIL
    assert Signal("paid", within=A_DAY).otherwise is FAIL
