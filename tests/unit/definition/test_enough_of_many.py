"""AnyOf and enough: what is refused when a workflow is imported, and what a plan stores of them."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from roundsman.definition.expressions import read_without_default
from roundsman.definition.plan import NEWEST_PLAN_VERSION, Quorum, QuorumMember, read_plan
from roundsman.definition.plan_differences import differences
from roundsman.definition.workflow import AnyOf, Signal, Sleep, Step
from roundsman.errors import DefinitionError
from tests.support.fan_out_stories import FENCED
from tests.support.machine_world import plan, step, workflow
from tests.support.quorum_stories import a_signal_or_a_time

AIR, SEA = (step(name, compensation=FENCED) for name in ("air", "sea"))
BOOK = step("book", AnyOf(AIR, SEA))
PICK = step("pick", for_each="input.lines", enough=2, compensation=FENCED)


def test_the_plan_says_how_many_have_to_succeed_and_reads_it_back() -> None:
    made = plan(AIR, SEA, BOOK, PICK)
    document = json.loads(made.text)
    assert document["planVersion"] == NEWEST_PLAN_VERSION
    found = {one["name"]: (one.get("enoughBefore"), one.get("enough")) for one in document["steps"]}
    assert found == {
        "air": (None, None),
        "sea": (None, None),
        "book": (1, None),
        "pick": (None, 2),
    }
    assert read_plan(made.text) == made
    assert made.quorums["air"] == Quorum(
        "book", (QuorumMember(("air",), ("air",)), QuorumMember(("sea",), ("sea",))), 1
    )


def test_a_plan_without_them_is_as_it_was() -> None:
    document = json.loads(plan(AIR, SEA, step("book", AIR, SEA)).text)
    assert document["planVersion"] == 1
    assert not any({"enough", "enoughBefore", "keep"} & one.keys() for one in document["steps"])


def test_a_change_of_the_number_is_a_difference_of_plans() -> None:
    before, after = plan(AIR, SEA, BOOK), plan(AIR, SEA, step("book", AnyOf(AIR, SEA, enough=2)))
    assert [one.sentence for one in differences(before, after)] == [
        "book: enough of after: 1, now 2"
    ]


def test_a_signal_and_a_sleep_need_nothing_to_undo() -> None:
    a_signal_or_a_time()


def test_any_of_says_what_it_is() -> None:
    assert repr(AnyOf(AIR, "sea", enough=2)) == "AnyOf(air, sea, enough=2)"
    assert [*AnyOf(AIR, "sea")] == [AIR, "sea"]


NO_UNDO = step("rail")
LATER = Sleep(name="later", for_=AIR.complete_within)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: AnyOf(AIR, SEA, enough=3),
            "AnyOf has enough=3, which is above the number of its steps, 2",
        ),
        (lambda: AnyOf(AIR, enough=0), "AnyOf: enough must be"),
        (lambda: AnyOf(AIR, 7), "AnyOf has 7; it must have steps or their names"),  # type: ignore[arg-type]
        (lambda: step("a", enough=1), "enough needs for_each; of several steps, write after=AnyOf"),
        (lambda: step("a", for_each="input.l", enough=0), "enough must be"),
        (lambda: step("a", for_each="input.l", enough=100), "a task has at most 99 items"),
        (
            lambda: step("a", for_each="input.l", enough=1, tolerate=1),
            "tolerate and enough are two limits of one thing",
        ),
        (
            lambda: workflow(AIR, NO_UNDO, step("book", AnyOf(AIR, NO_UNDO))),
            "step 'rail' is one of AnyOf(air, rail, enough=1), and has no compensation, so what it "
            "has done could not be undone if it is not needed; give it a compensation, or "
            "keep=True if that may stay",
        ),
        (
            lambda: workflow(step("pick", for_each="input.lines", enough=2)),
            "step 'pick' has enough=2, and has no compensation",
        ),
        (
            lambda: workflow(AIR, SEA, BOOK, step("tell", AIR)),
            "and 'tell' comes after it as well; only 'book' can follow a step that may not be "
            "needed: put 'tell' after 'book'",
        ),
        (
            lambda: workflow(AIR, PICK, step("book", AnyOf(AIR, PICK))),
            "and has enough itself; give the number in one of the two places",
        ),
        (
            lambda: workflow(
                step("ask", compensation=FENCED),
                AIR,
                step("rail", "ask", compensation=FENCED),
                step("book", AnyOf("air", "rail")),
            ),
            "and comes after 'ask', which does not come before all of them, and would stand if "
            "'rail' is not needed; make both one step, or put 'ask' before all of them",
        ),
        (
            lambda: workflow(AIR, SEA, BOOK, point_of_no_return=AIR),
            "and is the point of no return, which may not be undone",
        ),
        (
            lambda: workflow(AIR, SEA, replace(BOOK, when="results.air.price > `3`")),
            "and when of step 'book' reads its result, which is null if it was not needed or has "
            "failed; write results.air || another value",
        ),
        (
            lambda: workflow(AIR, SEA, step("book", AnyOf(AIR, "ferry"))),
            "step 'book' comes after 'ferry', but no step has that name",
        ),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_imported(
    make: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(DefinitionError) as raised:
        make()
    assert sentence in str(raised.value)


def test_what_may_stay_needs_no_compensation() -> None:
    rail = step("rail", keep=True)
    workflow(AIR, rail, step("book", AnyOf(AIR, rail)))


def test_a_result_with_a_default_may_be_read() -> None:
    workflow(AIR, SEA, replace(BOOK, when="(results.air || results.sea).price > `3`"))


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ("results.air.price", {"air"}),
        ("results.air || results.sea", set()),
        ("not_null(results.air, results.sea).price", set()),
        ("results.air.price > `3` && (results.sea || `{}`)", {"air"}),
        ("[results.air, results.sea][0]", {"air", "sea"}),
        ("input.lines[?sku == results.air]", set()),  # results of a line
        ("came.air", set()),
    ],
)
def test_what_is_read_without_a_default_is_found(expression: str, read: set[str]) -> None:
    assert read_without_default(expression) == read


def test_a_signal_may_be_one_of_many() -> None:
    accepted = Signal("accepted", within=AIR.complete_within)
    book = Step(
        name="book", agent="a", complete_within=AIR.complete_within, after=AnyOf(accepted, LATER)
    )
    assert plan(accepted, LATER, book).steps["book"].after == ("accepted", "later")
