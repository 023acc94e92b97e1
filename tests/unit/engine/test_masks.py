"""Which values are looked for in the texts that enter a task, and in which texts."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, TypedDict

import pytest

from roundsman import Masked, Signal, Step, Text, Workflow
from roundsman.definition.plan import Plan, plan_of
from roundsman.engine.masks import (
    masked_in_request,
    named_values,
    needed_step_inputs,
    needs_order,
    says_something,
    texts_of,
    texts_of_request,
    without_masked,
)
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.corrections import Change
from roundsman.model.events import (
    Cancel,
    Claimant,
    CommandSource,
    Event,
    Extend,
    Inspect,
    Outcome,
    Replied,
    Resolve,
    Resubmit,
    Signalled,
    Start,
)
from roundsman.model.json import Json
from roundsman.model.masked_values import EVERYTHING, MASK, MaskedTexts
from roundsman.model.task import (
    AddedStep,
    LeftOut,
    StepError,
    StepRecord,
    StepToAdd,
    Task,
    UnreadSignal,
)
from tests.support.agent_samples import request

AT = 1_800_000_000_000


class Leg(TypedDict):
    passport: Annotated[str, Text(40), Masked()]
    city: Annotated[str, Text(40)]


QUOTE = Step(name="quote", agent="bank", complete_within=timedelta(seconds=30), result_masked=True)
PAY = Step(name="pay", agent="bank", complete_within=timedelta(seconds=30), after=(QUOTE,))
CODE = Signal("code", name="wait", within=timedelta(hours=1), result_masked=True)
LEG = Step(name="leg", agent="bank", complete_within=timedelta(seconds=30), input=Leg)
NOTE = Step(name="note", agent="bank", complete_within=timedelta(seconds=30))
PLAN = plan_of(
    Workflow(
        name="claims",
        steps=(QUOTE, PAY, CODE),
        complete_within=timedelta(days=1),
        masked=("iban",),
        may_add=(LEG, NOTE),
    )
)
OPEN = plan_of(Workflow(name="open", steps=(replace(PAY, after=()),), complete_within=timedelta(1)))
ORDER: Json = {"iban": "DE02-1111", "city": "Rotterdam"}
TASK = new_task(PLAN, "ord-1", ProcessingOptions(), AT, shards=1)
WITH_LEG = replace(TASK, added={"leg[a]": AddedStep("pay")})
ASKED = CommandSource("c-1", "ann", "because of DE02-1111")
CLAIMANT = Claimant("a", "b")
ADDS = StepToAdd("leg[b]", (), {"passport": "P-1111", "city": "Delft"})


def replied(step: str = "pay", **changes: object) -> Replied:
    found = Replied(CLAIMANT, step, "perform", "lock", "key", Outcome.SUCCEEDED)
    return replace(found, **changes)  # type: ignore[arg-type]  # as the caller means it


def values(
    task: Task = TASK,
    content: Json = ORDER,
    *,
    plan: Plan = PLAN,
    event: Event | None = None,
    step_inputs: dict[str, Json] | None = None,
) -> list[tuple[str, Json]] | None:
    return named_values(plan, task, content, event=event, step_inputs=step_inputs)


def test_the_values_are_those_of_the_order_of_results_and_of_unread_signals() -> None:
    steps = {"quote": StepRecord(result={"n": ["Q-1"]}), "pay": StepRecord(result="open")}
    unread = (UnreadSignal("s-1", "code", AT, {"pin": 1}), UnreadSignal("s-2", "other", AT, "o"))
    assert values(replace(TASK, steps=steps, signals=unread)) == [
        ("iban", "DE02-1111"),
        ("the result of quote", "Q-1"),
        ("the result of wait", 1),
    ]


def test_the_values_from_before_a_correction_count_too() -> None:
    task = replace(TASK, corrections=((Change(("iban",), "DE02-2222"),),))
    assert values(task) == [("iban", "DE02-1111"), ("iban", "DE02-2222")]


@pytest.mark.parametrize(
    ("event", "more"),
    [
        (replied("quote", result="Q-2"), [("the result of quote", "Q-2")]),
        (replied("pay", result="open"), []),
        (replied(then=(ADDS,)), [("passport of leg[b]", "P-1111")]),
        (Resolve(ASKED, "quote", did=True, result="Q-3"), [("the result of quote", "Q-3")]),
        (Signalled(ASKED, "code", "4711"), [("the result of wait", "4711")]),
        (Signalled(ASKED, "other", "open"), []),
        (Resubmit(ASKED, changes=(Change(("iban",), "DE02-3"),)), [("iban", "DE02-3")]),
        (Resubmit(ASKED, changes=(Change(("city",), "Delft"),)), []),
        (Cancel(ASKED), []),
    ],
)
def test_the_values_that_come_with_an_event_count(
    event: Event, more: list[tuple[str, Json]]
) -> None:
    assert values(event=event) == [("iban", "DE02-1111"), *more]


def test_the_masked_input_of_an_added_step_counts_in_texts_about_it() -> None:
    given: dict[str, Json] = {"leg[a]": {"passport": "P-2222", "city": "Delft"}}
    assert values(WITH_LEG, step_inputs=given) == [
        ("iban", "DE02-1111"),
        ("passport of leg[a]", "P-2222"),
    ]
    assert needed_step_inputs(PLAN, WITH_LEG, replied("leg[a]")) == ("leg[a]",)
    assert needed_step_inputs(PLAN, WITH_LEG, Extend(ASKED, 1, "leg[a]")) == ("leg[a]",)
    assert needed_step_inputs(PLAN, WITH_LEG, Resolve(ASKED, "leg[a]", did=True)) == ("leg[a]",)
    assert needed_step_inputs(PLAN, WITH_LEG, replied("leg[b]")) == ()
    assert needed_step_inputs(PLAN, WITH_LEG, replied("pay")) == ()
    assert needed_step_inputs(PLAN, WITH_LEG, Cancel(ASKED)) == ()
    assert needed_step_inputs(PLAN, WITH_LEG, Extend(ASKED, 1)) == ()
    assert needed_step_inputs(OPEN, WITH_LEG, replied("leg[a]")) == ()
    noted = replace(TASK, added={"note[a]": AddedStep("pay")})
    assert needed_step_inputs(PLAN, noted, replied("note[a]")) == ()
    assert values(step_inputs={"gone[a]": {"passport": "P-3"}}) == [("iban", "DE02-1111")]


def test_a_result_that_was_left_out_of_the_record_counts_and_one_of_no_step_does_not() -> None:
    steps = {
        "quote": StepRecord(left_out=LeftOut("long", whole=["Q-9"])),
        "gone": StepRecord(result="x"),
    }
    assert values(replace(TASK, steps=steps)) == [
        ("iban", "DE02-1111"),
        ("the result of quote", "Q-9"),
    ]


def test_what_finds_values_knows_those_of_the_event_and_of_inputs_of_steps() -> None:
    given: dict[str, Json] = {"leg[a]": {"passport": "P-222222"}}
    found = texts_of(PLAN, WITH_LEG, ORDER, event=Signalled(ASKED, "code", "C-333333"))
    assert found.text("C-333333 P-222222") == f"{MASK} P-222222"
    found = texts_of(PLAN, WITH_LEG, ORDER, step_inputs=given)
    assert found.text("C-333333 P-222222") == f"C-333333 {MASK}"


def test_what_finds_the_values_of_a_request_knows_its_input_results_and_step_input() -> None:
    asked = request(
        input={"iban": "I-111111"},
        results={"quote": "Q-222222"},
        step_input={"pin": "S-333333"},
        masked=("input.iban", "results.quote", "stepInput.pin"),
    )
    found = texts_of_request(asked)
    assert found.text("I-111111 Q-222222 S-333333 other") == f"{MASK} {MASK} {MASK} other"


def test_without_the_order_nothing_is_known_and_every_text_is_masked() -> None:
    gone = replace(TASK, corrections=((Change(("gone",), removed=True),),))
    assert values(content=None) is None
    assert values(gone) is None
    assert texts_of(PLAN, TASK, None) == EVERYTHING
    assert needs_order(PLAN, TASK)


def test_an_erased_order_and_a_plan_without_masks_have_no_values() -> None:
    erased = replace(TASK, erased_at=AT)
    assert not needs_order(PLAN, erased)
    assert values(erased, None) == []
    assert not needs_order(OPEN, TASK)
    assert texts_of(OPEN, TASK, None) == MaskedTexts()
    assert values(plan=OPEN) == []


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Start(CLAIMANT), False),
        (Inspect(), False),
        (replied(), False),
        (replied(error=StepError("No", "")), True),
        (replied(then=(ADDS,)), True),
        (Cancel(ASKED), True),
        (Cancel(replace(ASKED, reason="")), False),
    ],
)
def test_only_an_event_with_a_text_is_masked(event: Event, says: bool) -> None:
    assert says_something(event) is says


def test_the_texts_of_an_event_are_masked_and_nothing_else_is() -> None:
    texts = texts_of(PLAN, TASK, ORDER)
    error = StepError("DE02-1111", "de02 1111 is unknown", unexpected=True)
    named = StepToAdd("leg[DE02-1111]", (), {"iban": "DE02-1111"})
    event = replied(result="DE02-1111", error=error, then=(ADDS, named))
    found = without_masked(event, texts)
    assert found == replace(
        event,
        error=replace(error, message=f"{MASK} is unknown"),
        then=(ADDS, replace(named, name=f"leg[{MASK}]")),
    )
    asked = replace(ASKED, reason=f"because of {MASK}")
    assert without_masked(Cancel(ASKED), texts) == Cancel(asked)
    assert without_masked(Start(CLAIMANT), texts) == Start(CLAIMANT)
    assert without_masked(Inspect(), EVERYTHING) == Inspect()
    assert without_masked(event, MaskedTexts()) is event
    added = replace(event, error=None)
    assert without_masked(added, texts) == replace(found, error=None)


def test_a_long_text_is_cut_after_it_is_masked() -> None:
    texts = texts_of(PLAN, TASK, ORDER)
    long = Cancel(replace(ASKED, reason="x" * 995 + "DE02-1111"))
    found = without_masked(long, texts)
    assert isinstance(found, Cancel)
    assert found.asked.reason == "x" * 995 + MASK[:5]


def test_a_request_names_what_is_masked_in_it() -> None:
    assert masked_in_request(PLAN, "pay", ["quote"]) == ("input.iban", "results.quote")
    assert masked_in_request(PLAN, "quote", ["pay"]) == ("input.iban",)
    assert masked_in_request(PLAN, "leg[a]", ()) == ("input.iban", "stepInput.passport")
    assert masked_in_request(PLAN, "gone", ["gone"]) == ("input.iban",)
    assert masked_in_request(OPEN, "pay", ["quote"]) == ()
