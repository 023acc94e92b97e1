"""What is shown of a task has no value that its plan masks, wherever the value stands."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import Step, Workflow
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.corrections import Change, parse_path
from roundsman.model.events import HistoryRow
from roundsman.model.json import Json
from roundsman.model.masked_values import MASK, MaskedPaths
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed, StepError, StepRecord, Task, Termination
from roundsman.ports import OrderRow
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.masks import NO_MASK, Mask, mask_of, shown
from tests.support.steps import step_record

AT = 1_800_000_000_000
CHARGE = Step(name="charge", agent="payment", complete_within=timedelta(seconds=30))
ORDER: Json = {
    "orderId": "ord-1",
    "token": "tok_visa",
    "guests": [{"name": "Amy", "passport": "X 12"}, {"name": "Bo", "passport": 4711}],
    "pins": {"door": {"pin": "07"}},
    "note": 'say "hi"',
}


class Orders:
    """Stands in for the store of orders: it has this row, or none."""

    def __init__(self, content: Json) -> None:
        self.content = content
        self.reads = 0

    def order(self, order_id: str) -> OrderRow | None:
        self.reads += 1
        return None if self.content is None else OrderRow(order_id, self.content, "hash", AT)


def plan(*masked: str, result_masked: bool = False, for_each: str | None = None) -> Plan:
    step = replace(CHARGE, result_masked=result_masked, for_each=for_each)
    return plan_of(
        Workflow(
            name="story", steps=(step,), complete_within=timedelta(hours=1), masked=tuple(masked)
        )
    )


def task(made: Plan, steps: Mapping[str, StepRecord] | None = None) -> Task:
    return replace(new_task(made, "ord-1", ProcessingOptions(), AT, shards=1), steps=steps or {})


def mask(made: Plan, one: Task | None = None, content: Json = ORDER) -> Mask:
    stack = DeployedStack("shop", {}, {})
    stack.__dict__["tasks"] = Orders(content)
    return mask_of(stack, one or task(made), made)


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("token", {"token": MASK}),
        ("guests[].passport", {"guests": [{"name": "Amy", "passport": MASK}, ...]}),
        ("pins.*.pin", {"pins": {"door": {"pin": MASK}}}),
        ("guests", {"guests": MASK}),
        ("pins.*", {"pins": {"door": MASK}}),
    ],
)
def test_a_masked_field_is_hidden_and_all_within_it(path: str, hidden: dict[str, Json]) -> None:
    found = MaskedPaths.of([path]).masked(ORDER)
    assert isinstance(found, dict)
    assert isinstance(ORDER, dict)
    if path == "guests[].passport":
        hidden = {
            "guests": [{"name": "Amy", "passport": MASK}, {"name": "Bo", "passport": MASK}],
        }
    assert found == ORDER | hidden


def test_a_path_masks_no_field_that_only_looks_like_it() -> None:
    content: Json = {"tokens": "a", "x": {"token": "b"}, "tokenx": "c"}
    assert MaskedPaths.of(["token"]).masked(content) == content
    assert MaskedPaths.of(["a.b"]).masked({"aXb": "c"}) == {"aXb": "c"}


def test_the_values_are_hidden_in_texts_whatever_stands_beside_them() -> None:
    found = mask(plan("token", "guests[].passport", "pins.*.pin", "note"))
    assert found.text("card tok_visa declined (tok_visa).") == f"card {MASK} declined ({MASK})."
    assert found.text("passport X 12 or 4711 or 94711") == f"passport {MASK} or {MASK} or 94711"
    assert found.text("pin 07, not 107 and not 2027-01-07x") == f"pin {MASK}, not 107 and not " + (
        "2027-01-07x"
    )
    assert found.text('{"note":"say \\"hi\\""}') == f'{{"note":"{MASK}"}}'
    assert found.text('they say "hi"!') == f"they {MASK}!"
    assert found.text("Amy") == "Amy"


def test_the_longer_value_is_hidden_first() -> None:
    found = mask(plan("a", "b"), content={"a": "12345x", "b": "12345x678"})
    assert found.text("12345x678") == MASK


def test_values_that_say_nothing_hide_nothing() -> None:
    found = mask(plan("a", "b", "c", "d"), content={"a": "", "b": None, "c": True, "d": [False]})
    assert found.text("true, false, null, and so on") == "true, false, null, and so on"


def test_a_whole_record_is_shown_without_the_values() -> None:
    made = plan("token")
    error = StepError("Declined", "tok_visa is blocked")
    record = step_record(
        process_state=ProcessState.ERROR,
        result={"tok_visa": ["x tok_visa", 5, None, True]},
        error=error,
    )
    one = replace(
        task(made, {"charge": record}),
        ending=Termination(TaskState.ARCHIVED, "charge: tok_visa", "charge", error=error),
        owed=(Owed("status", "failed", 1, AT, "because of tok_visa"),),
        corrections=(
            (Change(parse_path("token"), "tok_new"), Change(parse_path("note"), removed=True)),
            (Change(parse_path("y"), "tok_visa"),),
        ),
    )
    found = mask(made, one)
    hidden = shown(one, made, found)
    assert "tok_" not in repr(hidden)
    assert hidden.steps["charge"].result == {MASK: [f"x {MASK}", 5, None, True]}
    assert hidden.steps["charge"].error == StepError("Declined", f"{MASK} is blocked")
    assert hidden.ending == Termination(
        TaskState.ARCHIVED, f"charge: {MASK}", "charge", error=hidden.steps["charge"].error
    )
    assert hidden.corrections[0][1] == Change(parse_path("note"), removed=True)
    assert (
        replace(
            hidden, steps=one.steps, ending=one.ending, owed=one.owed, corrections=one.corrections
        )
        == one
    ), "nothing else changes"
    rows = [HistoryRow(1, AT, "failed", "charge", 1, "tok_visa was refused")]
    assert found.history(rows) == [replace(rows[0], reason=f"{MASK} was refused")]


def test_what_a_correction_has_replaced_stays_hidden_and_so_does_the_new_value() -> None:
    made = plan("token")
    one = replace(task(made), corrections=((Change(parse_path("token"), "tok_new"),),))
    found = mask(made, one)
    assert found.text("tok_visa, now tok_new") == f"{MASK}, now {MASK}"
    assert isinstance(ORDER, dict)
    assert found.input(one.input(ORDER)) == ORDER | {"token": MASK}


def test_numbers_of_a_result_are_hidden_too() -> None:
    found = mask(plan("pin"), content={"pin": 4711})
    assert found.json({"a": 4711, "b": 47110, "c": "4711"}) == {"a": MASK, "b": 47110, "c": MASK}


def test_a_masked_result_is_hidden_as_a_whole_and_its_values_in_messages() -> None:
    made = plan(result_masked=True)
    record = step_record(process_state=ProcessState.PROCESSED, result={"iban": ["DE02", {"n": 77}]})
    one = task(made, {"charge": record})
    stack = DeployedStack("shop", {}, {})
    orders = Orders(ORDER)
    stack.__dict__["tasks"] = orders
    found = mask_of(stack, one, made)
    assert orders.reads == 0, "no field of the order is masked"
    assert shown(one, made, found).steps["charge"].result == MASK
    assert found.text("DE02 77 iban") == f"{MASK} {MASK} iban"


def test_the_items_of_a_fan_out_have_masked_results_too() -> None:
    made = plan(result_masked=True, for_each="input.lines")
    record = step_record(process_state=ProcessState.PROCESSED, result="DE02")
    one = replace(task(made, {"charge[0]": record}), fan_outs={"charge": 1})
    for seen in (made, made.for_task(one)):
        assert shown(one, seen, mask(seen, one)).steps["charge[0]"].result == MASK


def test_a_step_without_a_result_shows_none() -> None:
    made = plan(result_masked=True)
    one = task(made, {"charge": StepRecord()})
    assert shown(one, made, mask(made, one)).steps["charge"].result is None


def test_without_the_order_no_text_of_it_is_shown() -> None:
    made = plan("token")
    record = step_record(result="a", error=StepError("Declined", "tok_visa is blocked"))
    one = task(made, {"charge": record})
    hidden = shown(one, made, mask(made, one, content=None))
    assert hidden.steps["charge"] == replace(record, result=MASK, error=StepError("Declined", MASK))
    assert mask(made, one, content=None).text("") == ""


def test_a_row_that_does_not_fit_the_corrections_is_no_order_of_the_task() -> None:
    made = plan("token")
    one = replace(task(made), corrections=((Change(parse_path("gone"), removed=True),),))
    assert mask(made, one).text("tok_visa") == MASK
    assert mask(made, one).text("anything") == MASK


def test_a_plan_that_masks_nothing_changes_nothing_and_reads_no_order() -> None:
    made = plan()
    stack = DeployedStack("shop", {}, {})  # it has no store
    one = task(made)
    assert mask_of(stack, one, made) is NO_MASK
    assert mask_of(stack, one, None) is NO_MASK
    assert shown(one, made, NO_MASK) is one
