"""What differs between two orders: values, steps, versions and times, and what is not compared."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from roundsman.model.instants import SECOND, format_duration
from roundsman.model.json import Json
from roundsman.model.masked_values import MASK
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from roundsman_console.aws.versions import Published
from roundsman_console.facts.order.difference import (
    MOST_TEXT,
    NOT_KNOWN,
    PARTS,
    OrderDifference,
    OrderSide,
    difference,
    version_at,
)
from roundsman_console.facts.order.order_facts import OrderFacts
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

PLAN = plan(step("reserve", agent="inventory"), step("charge", "reserve", agent="payment"))
UNKNOWN = StepError("UnknownMerchant", "POST answered 403")
VERSIONS = {"payment": [Published("Payment", 40, T0 - 9_000), Published("Payment", 41, T0 + 1)]}


def done(took: int = 200, result: Json = None, at: int = T0) -> StepRecord:
    return step_record(
        process_state=ProcessState.PROCESSED, started_at=at, finished_at=at + took, result=result
    )


def failed(took: int = 200, at: int = T0) -> StepRecord:
    return step_record(
        process_state=ProcessState.ERROR,
        started_at=at,
        finished_at=at + took,
        error=UNKNOWN,
        failure_count=3,
    )


def task(name: str, state: TaskState, steps: Mapping[str, StepRecord], took: int = 900) -> Task:
    first = World(PLAN).task
    return replace(
        first, task_id=name, state=state, steps=steps, owed=(), ended_at=first.created_at + took
    )


def side(of: Task, content: Json = None, *, planned: bool = True) -> OrderSide:
    return OrderSide(OrderFacts(of, PLAN if planned else None, at=T0), content)


def completed(content: Json = None, **steps: StepRecord) -> OrderSide:
    records = {"reserve": done(), "charge": done(), **steps}
    return side(task("ord-1028", TaskState.COMPLETED, records), content)


def archived(content: Json = None, **steps: StepRecord) -> OrderSide:
    records = {"reserve": done(), "charge": failed(), **steps}
    return side(task("ord-1029", TaskState.ARCHIVED, records), content)


def rows(found: OrderDifference) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.part, one.name, one.order, one.other) for one in found.differences]


def compare(
    order: OrderSide,
    other: OrderSide,
    published: Mapping[str, Sequence[Published]] | None = None,
) -> OrderDifference:
    return difference(order, other, published or {})


def test_an_order_that_failed_is_compared_with_one_that_completed() -> None:
    found = compare(
        archived({"customer": "c-4", "lines": [{"sku": "A"}]}, charge=failed(at=T0 + 10)),
        completed({"customer": "c-3", "lines": [{"sku": "A"}, {"sku": "B"}]}),
        VERSIONS,
    )
    assert rows(found) == [
        ("order", "state", "Archived", "Completed"),
        ("step", "charge: state", "Error", "Processed"),
        ("step", "charge: error", "UnknownMerchant: POST answered 403", None),
        ("step", "charge: failed attempts", "3", None),
        ("version", "payment", "41", "40"),
        ("input", "customer", "c-4", "c-3"),
        ("input", "lines[1].sku", None, "B"),
    ]
    assert found.same_version
    assert found.equal == 7, "workflow, version, priority, one state, two agents, a sku"
    assert found.sentence == f"7 of {7 + found.equal} values differ."


def test_equal_orders_differ_in_nothing() -> None:
    one = completed({"customer": "c-3"}, charge=done(result={"chargeId": "ch-1"}))
    found = compare(one, one)
    assert (rows(found), found.not_compared) == ([], 0)
    assert found.sentence.startswith("0 of ")


def test_masked_values_are_not_compared_and_nothing_says_whether_they_are_equal() -> None:
    one = {"card": MASK, "note": f"call {MASK}", "name": "x"}
    found = compare(archived(one), completed({**one, "name": "y"}))
    assert [row for row in rows(found) if row[0] == "input"] == [("input", "name", "x", "y")]
    assert found.not_compared == 2
    assert found.sentence.endswith("; 2 values are masked in both, and not compared.")
    one_of_them = compare(archived({"card": MASK}), completed({"card": MASK}))
    assert one_of_them.sentence.endswith("; 1 value is masked in both, and not compared.")
    alone = compare(archived({"card": MASK}), completed({}))
    assert ("input", "card", MASK, None) in rows(alone), "that it is there is known"
    assert alone.not_compared == 0


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        (200, 400, False),
        (1_000, 1_999, False),
        (1_500, 2_600, False),
        (1_000, 2_000, True),
        (0, SECOND, True),
        (28_000, 1_500, True),
    ],
)
def test_times_differ_if_one_is_twice_the_other_and_a_second_longer(
    first: int, second: int, differ: bool
) -> None:
    found = compare(archived(reserve=done(first)), completed(reserve=done(second)))
    assert bool(found.of("time")) is differ
    words = (format_duration(first), format_duration(second))
    assert [(one.name, one.order, one.other) for one in found.of("time")] == (
        [("reserve", *words)] if differ else []
    )


def test_a_step_that_was_not_begun_is_said_by_its_state_and_has_no_time() -> None:
    found = compare(archived(charge=StepRecord()), completed(charge=done(90_000)))
    said = [row for row in rows(found) if row[0] in ("step", "time")]
    assert said == [("step", "charge: state", "Pending", "Processed")]


def test_a_step_that_has_not_ended_has_no_time_and_no_time_is_negative() -> None:
    going = step_record(process_state=ProcessState.PROCESSING, started_at=T0)
    ended = step_record(process_state=ProcessState.PROCESSED, finished_at=T0 + 1)
    for record in (going, ended):
        assert compare(archived(charge=record), completed(charge=done(90_000))).of("time") == []
        assert compare(archived(charge=done(90_000)), completed(charge=record)).of("time") == []
    early = compare(archived(reserve=done(-5_000)), completed(reserve=done(3_000)))
    assert [(one.order, one.other) for one in early.of("time")] == [
        (format_duration(0), format_duration(3_000))
    ]


def test_versions_of_the_plan_tenants_and_how_the_orders_ended_are_compared() -> None:
    why = Termination(TaskState.ARCHIVED, "charge: failed for good", "charge", error=UNKNOWN)
    order = replace(archived().facts.task, tenant="shop-1", ending=why, plan="a" * 64)
    than = replace(completed().facts.task, tenant="shop-2", ended_at=T0 + 90_000, plan="b" * 64)
    found = compare(side(order), side(than))
    assert [row for row in rows(found) if row[0] == "order"] == [
        ("order", "state", "Archived", "Completed"),
        ("order", "version of the workflow", "a" * 12, "b" * 12),
        ("order", "why it ended", "charge: failed for good", None),
        ("order", "tenant", "shop-1", "shop-2"),
    ]
    assert [one.name for one in found.of("time")] == ["the order"]
    assert not found.same_version
    assert "; they have different versions of the workflow" in found.sentence
    assert "workflow." not in compare(archived(), completed()).sentence
    open_one = replace(order, state=TaskState.ACTIVE, ended_at=None)
    assert compare(side(open_one), side(than)).of("time") == []


def test_the_last_attempt_of_an_agent_tells_its_version() -> None:
    both = plan(step("reserve", agent="payment"), step("charge", "reserve", agent="payment"))

    def of(first: int, last: StepRecord) -> OrderSide:
        steps = {"reserve": done(at=first), "charge": last}
        return OrderSide(OrderFacts(task("ord-1", TaskState.COMPLETED, steps), both, at=T0), None)

    begun = step_record(process_state=ProcessState.PROCESSED, finished_at=T0 + 5)
    old, new = done(at=T0 - 50), done(at=T0 + 5)
    for early, late in ((of(T0 - 60, old), of(T0 - 60, new)), (of(T0 - 60, old), of(T0 + 5, old))):
        assert ("version", "payment", "40", "41") in rows(compare(early, late, VERSIONS))
    found = compare(of(T0 - 60, old), of(T0 - 60, begun), VERSIONS)
    assert ("version", "payment", "40", "41") in rows(found)


def test_a_step_without_an_agent_has_none_to_compare() -> None:
    alone = compare(side(archived().facts.task, planned=False), completed())
    same = compare(side(archived().facts.task, planned=False), side(completed().facts.task))
    assert same.equal == alone.equal, "an agent that is in no order is not equal"


@pytest.mark.parametrize(
    ("here", "there"), [({}, []), ({"a": ""}, {}), ({"a": None}, {"a": ""}), ({}, {"a": 1})]
)
def test_nothing_and_what_is_empty_differ(here: Json, there: Json) -> None:
    assert compare(archived(here), completed(there)).of("input")
    assert not compare(archived(here), completed(here)).of("input")


def test_results_are_compared_by_path_and_lists_and_empty_values_too() -> None:
    found = compare(
        archived(reserve=done(result={"id": "r-2", "at": {"shelf": 4}, "empty": []})),
        completed(reserve=done(result={"id": "r-1", "at": {"shelf": 4}, "empty": [1]})),
    )
    assert [row for row in rows(found) if row[0] == "result"] == [
        ("result", "reserve: id", "r-2", "r-1"),
        ("result", "reserve: empty[0]", None, "1"),
    ]
    bare = compare(archived(reserve=done(result=5)), completed(reserve=done(result="5.0")))
    assert ("result", "reserve", "5", "5.0") in rows(bare)


def test_of_a_step_that_only_one_order_has_only_that_is_said() -> None:
    other = replace(completed().facts.task, steps={"reserve": done()})
    short = OrderFacts(other, plan(step("reserve", agent="inventory")), at=T0)
    found = compare(archived(), OrderSide(short, None))
    assert [one.name for one in found.of("step")] == ["charge: state"]
    assert found.of("step")[0].other is None


def test_of_an_undone_step_the_error_is_said_and_no_time_of_its_undo() -> None:
    undone = step_record(process_state=ProcessState.UNDONE, started_at=T0, finished_at=T0 + 90_000)
    of = replace(
        task("ord-1029", TaskState.UNDONE, {"reserve": undone, "charge": undone}),
        ending=Termination(TaskState.UNDONE, "charge failed", "charge", error=UNKNOWN),
    )
    found = compare(side(of), completed())
    assert ("step", "charge: error", "UnknownMerchant: POST answered 403", None) in rows(found)
    assert not [row for row in rows(found) if row[:2] == ("step", "reserve: error")]
    assert not found.of("time"), "the record has the times of the undo, and not of the step"


def test_that_each_order_has_its_own_id_is_no_difference() -> None:
    found = compare(archived({"id": "ord-1029"}), completed({"id": "ord-1028"}))
    assert not found.of("input")
    assert compare(archived({"id": "ord-1029"}), completed({"id": "ord-1027"})).of("input")


def test_the_same_versions_are_said_and_an_agent_that_one_order_has_not_met_is_no_difference() -> (
    None
):
    versions = {**VERSIONS, "inventory": [Published("Inventory", 9, T0 - 9_000)]}
    found = compare(archived(charge=StepRecord()), completed(), versions)
    assert not found.of("version")
    assert found.sentence.endswith("Both met the same versions of the functions of inventory.")
    assert "of inventory, payment." in compare(archived(), completed(), versions).sentence


def test_long_values_are_cut_around_what_differs() -> None:
    same = "x" * 3_000
    found = compare(archived({"note": f"{same}NEW{same}"}), completed({"note": f"{same}OLD{same}"}))
    (row,) = found.of("input")
    assert row.order is not None
    assert row.other is not None
    assert row.order.startswith("…xxx")
    assert "NEW" in row.order
    assert "OLD" in row.other
    assert row.order.endswith("… (6,003 characters)")
    assert len(row.order) < MOST_TEXT + 40
    (row,) = compare(archived({"note": f"{same}NEW"}), completed({"note": same})).of("input")
    assert row.order == f"…{'x' * 40}NEW (3,003 characters)"
    assert row.other == f"…{'x' * 40} (3,000 characters)"
    first = "x" * (MOST_TEXT - 1)
    (row,) = compare(archived({"note": f"{first}1"}), completed({"note": f"{first}2"})).of("input")
    assert (row.order, row.other) == (f"{first}1", f"{first}2")
    (row,) = compare(archived({"note": same}), completed({"note": "short"})).of("input")
    assert row.other == "short"
    assert row.order == f"{'x' * MOST_TEXT}… (3,000 characters)"


@pytest.mark.parametrize("many", [40, 300])
def test_many_steps_are_compared(many: int) -> None:
    names = [f"step{place}" for place in range(many)]
    mine = {name: done(result={"id": f"a-{name}"}) for name in names}
    others = {name: done(result={"id": f"b-{name}"}) for name in names}
    found = compare(
        side(task("ord-2", TaskState.ARCHIVED, {**mine, names[-1]: failed()}), planned=False),
        side(task("ord-1", TaskState.COMPLETED, others), planned=False),
    )
    assert len(found.of("result")) == many
    assert found.of("step")[0].name == f"{names[-1]}: state"
    assert [one.part for one in found.differences] == sorted(
        (one.part for one in found.differences), key=[*PARTS].index
    )


VERSION_AT = [(T0, 40), (T0 + 1, 41), (T0 - 9_001, None), (None, None)]


@pytest.mark.parametrize(("instant", "version"), VERSION_AT)
def test_the_version_that_ran_is_the_newest_that_was_published(
    instant: int | None, version: int | None
) -> None:
    assert version_at(VERSIONS["payment"], instant) == version


def test_what_could_not_be_compared_is_said() -> None:
    early = archived(charge=failed(at=T0 - 90_000))
    found = compare(early, completed({"a": 1}), {"payment": VERSIONS["payment"]})
    assert ("version", "payment", NOT_KNOWN, "40") in rows(found)
    assert "The input of ord-1029 is not stored." in found.not_known
    assert "a rollback is not seen" in found.not_known[-1]
    open_one = replace(completed().facts.task, state=TaskState.ACTIVE, ended_at=None)
    erased = replace(archived().facts.task, erased_at=T0, erased_by="ops")
    found = compare(side(erased, {}), side(open_one, {}))
    assert "The contents of ord-1029 were erased." in found.not_known
    assert "ord-1028 has not ended yet." in found.not_known
    assert "It is not known which versions" in found.not_known[-1]
    assert len(compare(archived({}), completed({})).not_known) == 1
