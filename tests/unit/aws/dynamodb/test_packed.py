"""A task above 1 KB is stored packed: small, read back exactly, and refused where it is broken."""

import json
import random
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from roundsman.aws.dynamodb.codec import (
    PACKED,
    WORTH_COMPARING,
    WRITE_UNIT,
    due_attributes,
    failure_attributes,
    owed_list,
    plain_task_item,
    read_task,
    task_item,
)
from roundsman.aws.dynamodb.packed import (
    UNPACKED_LIMIT,
    NotPacked,
    is_larger,
    item_bytes,
    packed,
    unpacked,
)
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.corrections import Change
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PACKED_SCHEMA, StepError, Task, Termination
from tests.contract.samples import NOW, born
from tests.support.item_size import item_size
from tests.support.steps import step_record
from tests.unit.aws.dynamodb.test_codec import TASKS
from tests.unit.aws.dynamodb.test_formats import ERASED_TASK, TASK

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

STEP_FIELDS = {"ProcessState": "Processed", "StartedAt": NOW}


def bytes_of(document: object) -> bytes:
    """What is packed if the JSON is this."""
    return zlib.compress(json.dumps(document).encode())


def document_of(item: "dict[str, Value]") -> dict[str, object]:
    found: dict[str, object] = json.loads(zlib.decompress(item["Packed"]["B"]))
    return found


def chain(steps: int, *, seed: int = 1, result: int = 40) -> Task:
    """A task whose steps were performed one after the other, with lives as they really are.

    The instants, the tokens and the ids in the results are random: they do not compress.
    """
    dice = random.Random(seed)  # noqa: S311 - the same at every run
    instances = [dice.randbytes(2).hex() for _ in range(3)]
    at, records = NOW + 1_234, {}
    for place in range(steps):
        took = dice.randrange(20, 30_000)
        content = "".join(
            f"{dice.choice(('sku', 'bin', 'lot'))}-{dice.randbytes(5).hex()} "
            for _ in range(result // 15)
        )
        records[f"step_{place:03d}"] = step_record(
            process_state=ProcessState.PROCESSED,
            locked_by=f"{dice.choice(instances)}-{dice.randbytes(5).hex()}.1.{place + 2}",
            complete_by=at + 30_000,
            started_at=at,
            finished_at=at + took,
            result={"id": content},
        )
        at += took + dice.randrange(5, 200)
    return replace(born("ord-2026-11-21-000123"), version=steps + 2, steps=records)


# --- What is written ---------------------------------------------------------------------------


def test_a_task_below_one_kilobyte_is_written_plainly() -> None:
    task = born()
    room = WRITE_UNIT - item_size(plain_task_item(replace(task, tenant="")))
    exact = replace(task, tenant="x" * room)
    assert item_size(task_item(exact)) == WRITE_UNIT
    assert "Packed" not in task_item(exact)
    assert "Packed" in task_item(replace(task, tenant="x" * (room + 1)))


def test_a_packed_task_has_its_own_format_whatever_is_in_it() -> None:
    for each, schema in (
        (chain(20), "4"),
        (TASK, "7"),
        (ERASED_TASK, "7"),
    ):  # a step of TASK is polled
        task = replace(each, order_expires=False, correlation_id="x" * 99)
        item = task_item(task)
        assert item["Schema"] == {"N": schema}
        assert not set(item) & set(PACKED)
        assert read_task(item) == read_task(plain_task_item(task))


def test_code_that_knows_no_packed_records_leaves_them_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roundsman.aws.dynamodb.codec.SCHEMA", PACKED_SCHEMA - 1)
    with pytest.raises(SchemaTooNew):
        read_task(task_item(chain(20)))


def test_a_packed_record_without_its_contents_is_not_a_task_without_steps() -> None:
    item = task_item(chain(20))
    del item["Packed"]
    with pytest.raises(UnreadableRecord, match="Packed is missing"):
        read_task(item)


def test_what_an_index_a_condition_or_an_update_names_stays_outside() -> None:
    item, plain = task_item(TASK), plain_task_item(TASK)
    outside = {**due_attributes(TASK), **failure_attributes(TASK), "Owed": owed_list(TASK.owed)}
    names = {*outside, "TaskId", "State", "Version", "CompleteBy", "OrderExpires"}
    assert {name: item[name] for name in names} == {name: plain[name] for name in names}


def test_steps_are_columns_and_their_instants_are_differences() -> None:
    steps = {
        "a": step_record(
            process_state=ProcessState.PROCESSED,
            started_at=NOW,
            complete_by=NOW + 30,
            finished_at=NOW + 7,
            error=StepError("Odd", "x"),
        ),
        "b": step_record(
            process_state=ProcessState.PROCESSING,
            locked_by="lock",
            started_at=NOW + 9,
            complete_by=NOW + 39,
        ),
        "c": step_record(complete_by=NOW + 11),
        "d": step_record(started_at=NOW + 8, not_before=NOW, complete_by=NOW + 5),
    }
    task = replace(born(), steps=steps, tenant="x" * WRITE_UNIT)
    assert document_of(task_item(task)) == {
        "Steps": {
            "Names": ["a", "b", "c", "d"],
            "Fields": {
                "ProcessState": ["Processed", "Processing", "Pending", "Pending"],
                "CompleteBy": [30, 30, NOW + 11, -3],
                "FailureCount": [0, 0, None, 0],
                "StartedAt": [NOW, 2, None, -1],
                "FinishedAt": [7, None, None, None],
                "Error": [{"Type": "Odd", "Message": "x"}, None, None, None],
                "LockedBy": [None, "lock", None, None],
                "NotBefore": [None, None, None, -8],
            },
        }
    }
    assert read_task(task_item(task)) == task


@pytest.mark.exhaustive
@given(TASKS)
def test_what_is_packed_is_unpacked_as_it_was(task: Task) -> None:
    plain = plain_task_item(task)
    inner = {name: plain[name] for name in PACKED if name in plain}
    assert unpacked(packed(inner)) == inner


@pytest.mark.exhaustive
@given(TASKS)
def test_a_packed_record_is_the_same_task(task: Task) -> None:
    large = replace(task, tenant="x" * WRITE_UNIT)
    assert "Packed" in task_item(large)
    assert read_task(task_item(large)) == large


def test_the_size_is_the_one_that_is_billed() -> None:
    for task in (TASK, ERASED_TASK, born(), chain(3)):
        for item in (plain_task_item(task), task_item(task)):
            assert item_bytes(item) == item_size(item)
            assert is_larger(item, item_bytes(item) - 1)
            assert not is_larger(item, item_bytes(item))


def test_text_that_does_not_compress_is_stored_as_it_is_if_that_is_smaller() -> None:
    dice = random.Random(3)  # noqa: S311 - the same at every run

    def task(size: int) -> Task:
        odd = "".join(chr(dice.randrange(1, 32)) for _ in range(size))
        return replace(born(), ending=Termination(TaskState.ARCHIVED, odd))

    small, large = task(2_000), task(2 * WORTH_COMPARING)
    assert "Packed" in task_item(small)
    assert "Packed" not in task_item(large)
    assert "Packed" in task_item(replace(chain(100, result=1_500), state=TaskState.ARCHIVED))
    for one in (small, large):
        assert read_task(task_item(one)) == one


def test_an_attribute_that_cannot_be_packed_is_named_by_its_type() -> None:
    with pytest.raises(TypeError, match="the type NS cannot be packed"):
        packed({"Ending": {"NS": ["1"]}})
    with pytest.raises(TypeError, match="a step is not a map"):
        packed({"Steps": {"M": {"a": {"S": "x"}}}})


# --- What it costs -----------------------------------------------------------------------------


def units(item: "dict[str, Value]") -> int:
    return -(-item_size(item) // WRITE_UNIT)


def written(steps: int, **how: int) -> int:
    """The write units of one write after each of the steps."""
    whole = chain(steps, **how)
    first = list(whole.steps.items())
    return sum(
        units(task_item(replace(whole, steps=dict(first[: count + 1])))) for count in range(steps)
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_hundred_steps_with_random_instants_and_ids_need_less_than_three_units_each(
    seed: int,
) -> None:
    assert written(100, seed=seed) < 290
    assert item_size(task_item(chain(100, seed=seed))) < 5 * 1024


def test_up_to_nearly_twenty_steps_one_unit_is_enough_for_each() -> None:
    assert written(20) <= 22


# --- What is read ------------------------------------------------------------------------------

RECORDED = (
    "789c7554cd6edb300c7e958267a7f04fba6ebda5c5ba16d8daa269d643ec8322d18960473224b94911f8d1863d"
    "d25e6194b20c50b2e5a050e24789fcf8d13b983aec2c5cede081ad918c393048a093bc991715590ba812b895d8"
    "8a807a329aa3b553c71c7af09fbd544bc23ea112b145b15f356f505cbf7bf4655db051ca339163518fd9790689"
    "eadb362c04bdd1ebae4587013cca23df2d936d6ff046f7ca91374fd283e741bb6bacb5f1f98cb22888d2340ec5"
    "c44764979fd2fd2fcb2f9251f1f762a9a45d1d4051f833dabef5c7b02b819564945096bdf858881292ec3cad92"
    "1216749e0d71219f8dd186e03b7879ef282f78148258f9464cb1a5df5b26c5d9af9f3f6088e2264b0cd5c182f1"
    "a6efe24b9fa974114a8f42b8b333e5647be279ec1dd76b9ca946e98d22b7333d46883beaea542aee992b8e3c44"
    "dc02990bad189ff8f66c5d44e7af4c3adff37f3c34ed984171f2cabdfacea43a79e0c5c8009ec3469b060d31a7"
    "dd8afeabb8f2daa19929a13d610ab7ee8c05fae24ed435f240a9754c918663efd6197652c817c3940b197c3892"
    "a7317499d4ca1e913d0c74d75ef13423777a432d9e18be926fe8fbfeba221661436b12e68d367ec8f6b907b20e"
    "8af9af60c03f41f3b1a622ee4598533ea2f1a1350f13ca14f53b8ca89f5db81ad310336fa4c351e6309f939c3b"
    "e6567b45b752a1253da72466dbf4257855bfb1b647f297b02d49a45180d28e5cd550f9efc3cca208ca0c6f2fb5"
    "a26cf361f80d5f886eed"
)
"""The packed attribute of a task as it was first written; it can be read for ever."""


def test_a_record_that_was_packed_before_is_still_read() -> None:
    recorded: Value = {"B": bytes.fromhex(RECORDED)}
    steps = {name: TASK.steps[name] for name in ("a", "b", "pick[3]")}
    former = read_task(plain_task_item(replace(TASK, steps=steps)))
    assert read_task({**task_item(TASK), "Packed": recorded}) == former


def broken(value: "Value") -> UnreadableRecord:
    with pytest.raises(UnreadableRecord) as raised:
        read_task({**task_item(TASK), "Packed": value})
    assert raised.value.__cause__ is None or isinstance(raised.value.__cause__, NotPacked)
    return raised.value


WHOLE = bytes_of({})
BOMB = zlib.compress(b" " * (UNPACKED_LIMIT + 1))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"S": "x"}, "is not bytes"),
        ({"B": b""}, "is not complete"),
        ({"B": b"secret"}, "is not compressed by zlib"),
        ({"B": WHOLE[:-1]}, "is not complete"),
        ({"B": WHOLE[:-1] + b"x"}, "is not compressed by zlib"),
        ({"B": BOMB}, f"has more than {UNPACKED_LIMIT} bytes of JSON"),
        ({"B": zlib.compress(b'{"secret')}, "is not JSON"),
        ({"B": zlib.compress(b"\xff")}, "is not JSON"),
        ({"B": zlib.compress(b"[" * 200_000)}, "is not JSON"),
        ({"B": zlib.compress(b'{"Ending": ' + b"9" * 5_000 + b"}")}, "is not JSON"),
        (
            {
                "B": zlib.compress(
                    b'{"Steps": {"Names": ["a"], "Fields": {"StartedAt": [%s], "HeardAt": [%s]}}}'
                    % (b"9" * 4_300, b"9" * 4_300)
                )
            },
            "has a number or a nesting that no record has",
        ),
        ({"B": bytes_of([])}, "is not a JSON object"),
        ({"B": bytes_of({"Ending": None})}, "has a value of another type"),
        ({"B": bytes_of({"Ending": {"Why": 1.5}})}, "has a value of another type"),
        ({"B": bytes_of({"Steps": []})}, "has steps without Names and Fields"),
        ({"B": bytes_of({"Steps": {"Names": []}})}, "has steps without Names and Fields"),
        ({"B": bytes_of({"Steps": {"Fields": {}}})}, "has steps without Names and Fields"),
        (
            {"B": bytes_of({"Steps": {"Names": ["a", 1], "Fields": {}}})},
            "has steps whose names are not different texts",
        ),
        (
            {"B": bytes_of({"Steps": {"Names": ["a", "a"], "Fields": {}}})},
            "has steps whose names are not different texts",
        ),
        (
            {"B": bytes_of({"Steps": {"Names": ["a"], "Fields": {"StartedAt": 1}}})},
            "has a column of another length than its steps",
        ),
        (
            {"B": bytes_of({"Steps": {"Names": ["a"], "Fields": {"StartedAt": [1, 2]}}})},
            "has a column of another length than its steps",
        ),
    ],
)
def test_bytes_that_are_not_packed_attributes_are_named_and_not_quoted(
    value: "Value", problem: str
) -> None:
    found = broken(value)
    assert (found.field, str(found)) == (
        "Packed",
        f"the record ord-1 cannot be read: Packed {problem}",
    )


def test_a_nesting_that_the_parser_just_reads_is_no_record_either() -> None:
    deep = b'{"Ending": ' + b"[" * 700 + b"]" * 700 + b"}"
    assert broken({"B": zlib.compress(deep)}).field in {"Packed", "Ending"}


def test_a_bomb_of_exactly_the_limit_is_read_and_is_no_record() -> None:
    assert unpacked(zlib.compress(b"{}" + b" " * (UNPACKED_LIMIT - 2))) == {}


def test_a_bomb_does_not_fill_the_memory_before_it_is_refused() -> None:
    packer, block = zlib.compressobj(), b" " * UNPACKED_LIMIT
    bomb = b"".join([*(packer.compress(block) for _ in range(10)), packer.flush()])
    tracemalloc.start()
    try:
        with pytest.raises(NotPacked):
            unpacked(bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * UNPACKED_LIMIT


Columns = dict[str, list[object]]


def no_state(fields: Columns) -> None:
    del fields["ProcessState"]


def early(fields: Columns) -> None:
    fields["StartedAt"] = ["soon"]


def flag_as_instant(fields: Columns) -> None:
    fields["FinishedAt"] = [{"a": 1}]


def odd_result(fields: Columns) -> None:
    fields["Result"] = ["{"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (no_state, "Steps.a.ProcessState"),
        (early, "Steps.a.StartedAt"),
        (flag_as_instant, "Steps.a.FinishedAt"),
        (odd_result, "Steps.a.Result"),
    ],
)
def test_a_wrong_field_of_a_packed_step_is_named_as_that_of_a_plain_one(
    change: Callable[[Columns], None], field: str
) -> None:
    fields: Columns = {name: [one] for name, one in STEP_FIELDS.items()}
    change(fields)
    found = broken({"B": bytes_of({"Steps": {"Names": ["a"], "Fields": fields}})})
    assert found.field == field


def test_an_unknown_attribute_that_is_packed_is_ignored_and_replaces_nothing() -> None:
    task = replace(chain(20), corrections=((Change(("note",), "x"),),))
    item = task_item(task)
    data = bytes_of({**document_of(item), "TaskId": "other", "Version": 1, "New": "y"})
    assert read_task({**item, "Packed": {"B": data}}) == task
