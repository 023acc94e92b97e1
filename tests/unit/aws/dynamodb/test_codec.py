"""Task records as DynamoDB items: exact, small, and read back with care."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.aws.dynamodb import codec
from roundsman.aws.dynamodb.codec import (
    TEXT,
    history_item,
    order_item,
    read_history,
    read_order,
    read_task,
    task_item,
)
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.packed import item_bytes
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.corrections import Change
from roundsman.model.events import HistoryRow
from roundsman.model.field_table import Field, FieldTable
from roundsman.model.json import Json
from roundsman.model.situations import (
    AtAgent,
    AwaitsCallback,
    End,
    Ended,
    NotBegun,
    Parked,
    Ready,
    WaitsUntil,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    ADDED_SCHEMA,
    DIVIDED_SCHEMA,
    PACKED_SCHEMA,
    PERFORM,
    SCHEMA,
    UNDO,
    AddedStep,
    Owed,
    StepError,
    StepRecord,
    Task,
    Termination,
)
from roundsman.ports import OrderRow
from tests.contract.samples import LOCK, NOW, born, claimed, completed
from tests.support.steps import step_record

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

INSTANTS = st.integers(0, 10**14)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def maybe(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    return st.none() | strategy


def maybe_at() -> st.SearchStrategy[int | None]:
    return st.none() | INSTANTS


ATTEMPT = {
    "lock": TEXTS,
    "until": INSTANTS,
    "heard_at": maybe_at(),
    "extra": st.integers(0, 10**9),
    "late_since": maybe_at(),
    "read_past_at": maybe_at(),
}
IDLE = (
    st.builds(Ready, claim_by=INSTANTS, late_since=maybe_at(), parked_since=maybe_at())
    | st.builds(WaitsUntil, not_before=INSTANTS, claim_by=INSTANTS)
    | st.builds(Parked, not_before=INSTANTS, claim_by=INSTANTS, since=INSTANTS)
)
AT_AGENT = st.builds(AtAgent, heartbeat_by=maybe_at(), **ATTEMPT)
AWAITS_CALLBACK = st.builds(
    AwaitsCallback,
    remind_every=st.integers(0, 10**9),
    remind_at=maybe_at(),
    reminded_by=maybe(TEXTS),
    **ATTEMPT,
)
OVER = st.sampled_from((End.SUCCEEDED, End.FAILED))
PERFORM_SITUATIONS = (
    st.builds(NotBegun)
    | IDLE
    | AT_AGENT
    | AWAITS_CALLBACK
    | st.builds(Ended, how=OVER, until=maybe_at())
    | st.just(Ended(how=End.SKIPPED))
)
UNDO_SITUATIONS = IDLE | AT_AGENT | st.builds(Ended, how=OVER)
SITUATIONS = st.tuples(st.just(PERFORM), PERFORM_SITUATIONS) | st.tuples(
    st.just(UNDO), UNDO_SITUATIONS
)
LASTING = st.builds(
    StepRecord,
    failure_count=st.integers(0, 20),
    started_at=maybe_at(),
    finished_at=maybe_at(),
    result=JSON,
    error=st.none() | st.builds(StepError, TEXTS, TEXTS),
    agent=maybe(TEXTS),
    round=st.integers(1, 9),
    acts_until=maybe_at(),
    outcome_unknown=st.booleans(),
    key_since=maybe_at(),
    key_until=maybe_at(),
)
STEPS = st.builds(
    lambda record, of: replace(record, operation=of[0], situation=of[1]), LASTING, SITUATIONS
)
TASKS = st.builds(
    Task,
    task_id=st.text("abc-._~", min_size=1),
    workflow=TEXTS,
    plan=st.text("0123456789abcdef", min_size=64, max_size=64) | TEXTS,
    state=st.sampled_from(TaskState),
    version=st.integers(1, 10**6),
    created_at=INSTANTS,
    start_at=INSTANTS,
    complete_by=INSTANTS,
    retain_for=st.integers(0, 10**12),
    shard=st.integers(0, 255),
    lane=TEXTS,
    due_at=INSTANTS,
    steps=st.dictionaries(st.text("abc_[0]", min_size=1, max_size=5), STEPS, max_size=3),
    owed=st.lists(
        st.builds(Owed, TEXTS, TEXTS, st.integers(0, 10**6), INSTANTS, TEXTS), max_size=2
    ).map(tuple),
    ending=st.none()
    | st.builds(
        Termination,
        st.sampled_from([one for one in TaskState if one is not TaskState.COMPLETED]),
        TEXTS,
        maybe(TEXTS),
        undo=st.booleans(),
    )
    | st.builds(
        Termination,
        st.just(TaskState.COMPLETED),
        TEXTS,
        undo=st.just(value=True),
        part=st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    ),
    ended_at=maybe_at(),
    expires_at=st.none() | st.integers(0, 10**11).map(lambda seconds: seconds * 1_000),
    priority=st.sampled_from(["normal", "urgent"]),
    tenant=maybe(TEXTS),
    reply_to=maybe(TEXTS),
    correlation_id=maybe(TEXTS),
    command_ids=st.lists(TEXTS, max_size=3).map(tuple),
)


@pytest.mark.exhaustive
@given(TASKS)
def test_every_record_reads_back_as_it_was_written(task: Task) -> None:
    assert read_task(task_item(task)) == task


@pytest.mark.exhaustive
@given(JSON)
def test_every_order_reads_back_as_it_was_written(content: Json) -> None:
    row = OrderRow("ord-1", content, "a hash", NOW)
    assert read_order(order_item(row)) == row


def test_history_reads_back_as_it_was_written() -> None:
    row = HistoryRow(2_000, NOW, "failed", "charge_card", 2, "charge_card: attempt 2 of 5")
    assert read_history(history_item("ord-1", row)) == row
    bare = HistoryRow(2_001, NOW, "failed", None, None, "late")
    assert read_history(history_item("ord-1", bare)) == bare
    asked = HistoryRow(2_002, NOW, "cancel", None, None, "cancel by ann", "ann", "c-1")
    assert read_history(history_item("ord-1", asked)) == asked


@pytest.mark.parametrize("result", [0.1, 1e300, -0.0, 10**40, 123456789012345678.0, [1, 1.0]])
def test_a_result_keeps_its_numbers_exactly(result: Json) -> None:
    task = replace(born(), steps={"a": step_record(result=result)})
    read = read_task(task_item(task)).step("a").result
    assert repr(read) == repr(result)


def test_what_utf8_cannot_say_is_replaced_in_texts_and_kept_in_json() -> None:
    half = "\ud83d"
    step = step_record(result={"a": half}, error=StepError("Odd", f"code {half}"))
    item = task_item(replace(born(), steps={"a": step}))
    str(item).encode()  # raises where anything in it is no UTF-8
    read = read_task(item).step("a")
    assert read.result == {"a": half}
    assert read.error == StepError("Odd", "code \ufffd")


def test_a_record_expires_at_a_full_second_and_never_early() -> None:
    task = replace(born(), expires_at=1_790_000_000_001)
    assert task_item(task)["ExpiresAt"] == {"N": "1790000001"}
    exact = replace(born(), expires_at=1_790_000_000_000)
    assert task_item(exact)["ExpiresAt"] == {"N": "1790000000"}


def test_defaults_are_not_written() -> None:
    names = {"TaskId", "State", "Version", "Workflow", "Plan", "CreatedAt", "CompleteBy"}
    assert set(task_item(replace(born(), retain_for=0))) == names | {"Shard", "Lane", "DueAt"}


def test_a_claimed_step_shows_the_fields_of_the_pattern_even_where_they_say_nothing() -> None:
    step = task_item(claimed(born()))["Steps"]["M"]["reserve_stock"]["M"]
    assert step == {
        "ProcessState": {"S": "Processing"},
        "LockedBy": {"S": LOCK},
        "CompleteBy": {"N": str(NOW + 30_000)},
        "FailureCount": {"N": "0"},
        "StartedAt": {"N": str(NOW)},
    }


def test_a_step_that_was_never_claimed_says_only_what_became_of_it() -> None:
    skipped = step_record(process_state=ProcessState.SKIPPED, finished_at=NOW)
    step = task_item(replace(born(), steps={"a": skipped}))["Steps"]["M"]["a"]["M"]
    assert step == {"ProcessState": {"S": "Skipped"}, "FinishedAt": {"N": str(NOW)}}


def test_a_newer_format_is_not_read_whatever_else_is_in_it() -> None:
    with pytest.raises(SchemaTooNew, match="ord-1001 has the record format 11"):
        read_task({"TaskId": {"S": "ord-1001"}, "Schema": {"N": "11"}})


def test_attributes_of_another_hand_do_not_disturb() -> None:
    task = claimed(born())
    assert read_task({**task_item(task), "Trouble": {"N": "3"}, "Note": {"S": "hi"}}) == task


def spoiled(change: "Callable[[dict[str, Value]], None]") -> "dict[str, Value]":
    step = step_record(result=1, error=StepError("a", "b"), started_at=NOW)
    full = replace(
        completed(born(), owed=("completed",)),
        steps={"pack": step},
        ending=Termination(TaskState.ARCHIVED, "why"),
        command_ids=("c-1",),
    )
    item = task_item(full)
    change(item)
    return item


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("TaskId", lambda item: item.pop("TaskId")),
        ("State", lambda item: item.pop("State")),
        ("State", lambda item: item.update(State={"S": "Sleeping"})),
        ("Version", lambda item: item.update(Version={"S": "two"})),
        ("Version", lambda item: item.update(Version={"N": "1.5"})),
        ("Plan", lambda item: item.update(Plan={"N": "1"})),
        ("Schema", lambda item: item.update(Schema={"S": "2"})),
        ("Steps", lambda item: item.update(Steps={"L": []})),
        ("Steps.pack", lambda item: item["Steps"]["M"].update(pack={"S": "Done"})),
        (
            "Steps.pack.ProcessState",
            lambda item: item["Steps"]["M"]["pack"]["M"].pop("ProcessState"),
        ),
        (
            "Steps.pack.Result",
            lambda item: item["Steps"]["M"]["pack"]["M"].update(Result={"S": "{"}),
        ),
        (
            "Steps.pack.Error.Message",
            lambda item: item["Steps"]["M"]["pack"]["M"]["Error"]["M"].pop("Message"),
        ),
        ("Owed", lambda item: item.update(Owed={"M": {}})),
        ("Owed[0]", lambda item: item.update(Owed={"L": [{"S": "completed"}]})),
        ("Owed[0].Seq", lambda item: item["Owed"]["L"][0]["M"].pop("Seq")),
        ("Ending", lambda item: item.update(Ending={"S": "Archived"})),
        ("Ending.Undo", lambda item: item["Ending"]["M"].update(Undo={"S": "yes"})),
        ("CommandIds", lambda item: item.update(CommandIds={"S": "c-1"})),
        (
            "Steps.pack.OutcomeUnknown",
            lambda item: item["Steps"]["M"]["pack"]["M"].update(OutcomeUnknown={"N": "1"}),
        ),
        (
            "Steps.pack.ActsUntil",
            lambda item: item["Steps"]["M"]["pack"]["M"].update(ActsUntil={"S": "soon"}),
        ),
        ("Ending.How", lambda item: item["Ending"]["M"].update(How={"S": "badly"})),
    ],
)
def test_a_field_that_is_wrong_is_named(
    field: str, change: "Callable[[dict[str, Value]], None]"
) -> None:
    with pytest.raises(UnreadableRecord) as raised:
        read_task(spoiled(change))
    assert raised.value.field == field
    assert field in str(raised.value)


def test_an_order_that_cannot_be_read_is_not_quoted() -> None:
    item = order_item(OrderRow("ord-1", {}, "a hash", NOW))
    item["Content"] = {"S": '{"paymentToken": "tok_secret"'}
    with pytest.raises(UnreadableRecord, match=r"ord-1 .* Content is not JSON") as raised:
        read_order(item)
    assert "tok_secret" not in str(raised.value)


def test_an_erased_task_has_a_format_that_older_code_does_not_read() -> None:
    erased = replace(born(), erased_at=NOW, erased_by="ann: request 17")
    moved = replace(erased, used_rounds={"gone": 1})
    for changed in (erased, moved):
        assert task_item(changed)["Schema"] == {"N": "3"}
        assert read_task(task_item(changed)) == changed
    assert task_item(erased)["ErasedAt"] == {"N": str(NOW)}
    assert task_item(erased)["ErasedBy"] == {"S": "ann: request 17"}


FIRST_FORMAT = {
    "TASK": """TaskId State Version Workflow Plan CreatedAt StartAt CompleteBy RetainFor Shard Lane
        DueAt ExpiresAt Steps Owed Ending EndedAt Priority Tenant ReplyTo CorrelationId CommandIds
        FanOuts HeldUntil""",
    "SITUATION": """ProcessState LockedBy CompleteBy NotBefore HeldSince HeldFor HeartbeatBy HeardAt
        Waiting Extra""",
    "LASTING": """Round Agent Tried StartedAt ActsUntil Effect OutcomeUnknown FailureCount Spared
        InVain Granted FinishedAt Result Error AfterUndo""",
    "RETRY_WINDOW": "",
    "POLLING": "",
    "ERROR": "Type Message",
    "OWED": "Kind Name Seq At Detail",
    "ENDING": "How Why Step Undo Error",
}
"""The fields that all code knows, by the table that has them. HeldFor is newer, and code that does
not know it may drop it: the task is then in no list of parked ones, and looks itself."""


def with_new_field(name: str, attribute: str) -> "FieldTable[ItemReader, Value, object]":
    """This table of a later version: it stores the attribute, a text, in a field that is new."""
    table: FieldTable[ItemReader, Value, object] = getattr(codec, name)
    new: Field[ItemReader, Value] = Field("New", attribute, TEXT, None, since=SCHEMA + 1)
    return FieldTable(table.make, *(new if f.attribute == attribute else f for f in table.fields))


def one_step(step: StepRecord) -> Task:
    return replace(born(), steps={"a": step})


@pytest.mark.parametrize(
    ("table", "attribute", "task", "without"),
    [
        ("TASK", "tenant", replace(born(), tenant="x"), born()),
        ("LASTING", "agent", one_step(step_record(agent="x")), one_step(StepRecord())),
    ],
)
def test_an_older_version_refuses_a_record_only_while_a_field_that_it_would_drop_is_set(
    table: str, attribute: str, task: Task, without: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(codec, table, with_new_field(table, attribute))
        newer.setattr(codec, "SCHEMA", SCHEMA + 1)
        item, item_without = task_item(task), task_item(without)
        assert read_task(item) == task
    assert item["Schema"] == {"N": str(SCHEMA + 1)}
    with pytest.raises(SchemaTooNew):
        read_task(item)
    assert read_task(item_without) == without
    assert "Schema" not in item_without


ODD = StepError("Odd", "why")
ENDING = Termination(TaskState.ARCHIVED, "why", "a", error=ODD)


@pytest.mark.parametrize(
    ("table", "attribute", "task"),
    [
        ("TASK", "tenant", replace(born(), tenant="x")),
        ("LASTING", "agent", one_step(step_record(agent="x"))),
        ("ERROR", "type", one_step(step_record(error=ODD))),
        ("ERROR", "type", replace(born(), ending=ENDING)),
        ("ENDING", "step", replace(born(), ending=ENDING)),
        ("OWED", "detail", replace(born(), owed=(Owed("status", "failed", 9, NOW, "why"),))),
    ],
)
def test_a_new_field_anywhere_in_a_task_gives_its_record_the_format(
    table: str, attribute: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"s{n}": step_record(started_at=NOW) for n in range(50)}
    packed = replace(task, steps={**task.steps, **many})
    monkeypatch.setattr(codec, table, with_new_field(table, attribute))
    assert "Packed" in task_item(packed)
    for one in (task, packed):
        assert task_item(one)["Schema"] == {"N": str(SCHEMA + 1)}


def test_a_field_that_the_first_version_did_not_know_has_a_format() -> None:
    found, formats = dict[str, list[str]](), set[int]()
    for name in FIRST_FORMAT:
        fields = getattr(codec, name).fields
        found[name] = [field.name for field in fields if field.since == 1]
        formats |= {field.since for field in fields}
    assert found == {name: names.split() for name, names in FIRST_FORMAT.items()}
    assert max(formats | {PACKED_SCHEMA, DIVIDED_SCHEMA}) == SCHEMA
    assert PACKED_SCHEMA not in formats, "code takes an item of it for one that lost its contents"


def test_the_format_of_a_record_is_the_highest_of_its_fields() -> None:
    task = born()
    assert "Schema" not in task_item(task)
    attempt = {"process_state": ProcessState.PROCESSING, "locked_by": "lock", "complete_by": NOW}
    waits = {"a": step_record(waiting=True, remind_at=NOW, **attempt)}
    for changed, format_ in (
        (replace(task, corrections=((Change(("note",), "x"),),)), 2),
        (replace(task, steps={"a": step_record(corrections=1)}), 2),
        (replace(task, used_rounds={"gone": 1}), 3),
        (replace(task, steps=waits), 3),
        (replace(task, steps={"a": step_record(retry_until=NOW)}), 3),
        (replace(task, steps={"a": step_record(waits=1)}), 3),
        (replace(task, steps={"a": step_record(error=StepError("a", "b", unexpected=True))}), 3),
        (replace(task, order_expires=True), 5),
        (replace(task, order_expires=True, steps=waits), 5),
        (replace(task, deadline=NOW + 1, steps=waits), 6),
        (replace(task, steps={"a": step_record(late_since=NOW, **attempt)}), 6),
        (replace(task, steps={"a": step_record(late_since=NOW, read_past_at=NOW, **attempt)}), 7),
        (replace(task, steps={"a": step_record(key_until=NOW)}), 7),
        (replace(task, steps={"a": step_record(key_since=NOW)}), 9),
        (replace(task, added={"leg[a]": AddedStep("a")}, steps=waits), ADDED_SCHEMA),
    ):
        assert task_item(changed)["Schema"] == {"N": str(format_)}
        assert read_task(task_item(changed)) == changed


def test_a_task_with_a_deadline_has_its_format_whatever_else_is_in_it() -> None:
    task = replace(born(), deadline=NOW + 1)
    assert task_item(task)["Schema"] == {"N": "6"}
    assert read_task(task_item(task)) == task
    corrected = replace(task, corrections=((Change(("note",), "x"),),))
    erased = replace(task, erased_at=NOW, erased_by="ann: request 17")
    long = replace(task, steps={f"s{n}": step_record(started_at=NOW) for n in range(50)})
    for changed in (corrected, erased, long):
        assert task_item(changed)["Schema"] == {"N": "6"}
        assert read_task(task_item(changed)) == changed
    assert "Schema" not in task_item(replace(task, deadline=None))


def test_code_that_knows_no_deadline_does_not_read_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roundsman.aws.dynamodb.codec.SCHEMA", DIVIDED_SCHEMA)
    with pytest.raises(SchemaTooNew):
        read_task(task_item(replace(born(), deadline=NOW + 1)))


def test_the_number_of_items_left_out_is_beside_the_steps_and_takes_no_kilobyte() -> None:
    error = StepError("Full", "no room")
    skipped = step_record(process_state=ProcessState.SKIPPED, error=error)
    task = replace(born(), fan_outs={"pick": 3}, steps={"pick[0]": StepRecord()})
    partly = replace(task, steps={"pick[0]": skipped, "pick[2]": skipped})
    many = replace(partly, steps={**partly.steps, **{f"s{n}": skipped for n in range(50)}})
    assert "LeftOut" not in task_item(task)
    for one in (partly, many):
        item = task_item(one)
        assert item["LeftOut"] == {"N": "2"}
        without = {name: value for name, value in item.items() if name != "LeftOut"}
        assert item_bytes(item) - item_bytes(without) < 16
        assert read_task(item) == one
    assert "Schema" not in task_item(partly), "a count that is lost harms nobody"
