"""Commands: what is asked is read as it was written, and what is wrong is named field by field."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.errors import InvalidMessage
from roundsman.model.corrections import Change
from roundsman.model.events import (
    COMMAND_KINDS,
    Cancel,
    CommandSource,
    Erase,
    Extend,
    Move,
    OperatorEvent,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    UndoAsked,
    UndoPart,
)
from roundsman.model.json import Json
from roundsman.model.senders import LONGEST_SENDER
from roundsman.wire.commands import (
    LONGEST_COMMAND_ID,
    LONGEST_EXTENSION,
    LONGEST_REASON,
    SIGNAL_ID,
    Command,
    command_of,
    read_command,
    signal_without_data,
)
from tests.unit.wire.test_messages import contents, ids, instants, texts

asked = st.builds(
    CommandSource,
    command_id=texts,
    by=texts,
    reason=st.just("") | texts,
    seen_version=st.none() | instants,
)
paths = st.tuples(texts) | st.tuples(texts, st.integers(0, 9), texts)
changes = st.builds(Change, paths, contents) | st.builds(Change, paths, removed=st.just(value=True))
operator_events: st.SearchStrategy[OperatorEvent] = st.one_of(
    st.builds(
        Resubmit,
        asked,
        st.lists(texts, max_size=3).map(tuple),
        fresh_key=st.booleans(),
        again=st.booleans(),
        plan=st.none() | st.text("0123456789abcdef", min_size=64, max_size=64),
        changes=st.lists(changes, max_size=3).map(tuple),
        used=st.booleans(),
        not_done=st.lists(texts, max_size=3).map(tuple),
    ),
    st.builds(UndoAsked, asked),
    st.builds(UndoPart, asked, st.lists(texts, min_size=1, max_size=3).map(tuple)),
    st.builds(Cancel, asked, undo=st.booleans()),
    st.builds(Resolve, asked, texts, did=st.just(value=True), result=contents),
    st.builds(Resolve, asked, texts, did=st.just(value=False)),
    st.builds(Extend, asked, st.integers(1, LONGEST_EXTENSION), st.none() | texts),
    st.builds(RunNow, asked),
    st.builds(Move, asked, st.text("0123456789abcdef", min_size=64, max_size=64)),
    st.builds(Reconcile, asked, st.integers(0, 2**50)),
    st.builds(
        Signalled,
        st.builds(CommandSource, st.from_regex(SIGNAL_ID, fullmatch=True), texts),
        texts,
        contents,
    ),
    st.builds(Erase, asked),
)


@given(ids, operator_events)
def test_what_a_person_asks_is_read_as_it_was_written(task_id: str, event: OperatorEvent) -> None:
    command = command_of(task_id, event)
    assert read_command(command.body()) == command
    assert command.kind == COMMAND_KINDS[type(event)]


WHO = {"commandId": "c-1", "by": "ann", "reason": "why", "seenVersion": 4}
ASKED = CommandSource("c-1", "ann", "why", 4)
WIRE: list[tuple[OperatorEvent, str, dict[str, Json]]] = [
    (
        Resubmit(ASKED, ("a",), fresh_key=True),
        "resubmit",
        {"steps": ["a"], "freshKey": True, "again": False},
    ),
    (
        Resubmit(ASKED, plan="0f" * 32),
        "resubmit",
        {"steps": [], "freshKey": False, "again": False, "plan": "0f" * 32},
    ),
    (
        Resubmit(
            ASKED,
            changes=(Change(("lines", 0, "sku"), None), Change(("note",), removed=True)),
            used=True,
            not_done=("a",),
        ),
        "resubmit",
        {
            "steps": [],
            "freshKey": False,
            "again": False,
            "input": [{"path": ["lines", 0, "sku"], "value": None}, {"path": ["note"]}],
            "used": True,
            "notDone": ["a"],
        },
    ),
    (UndoAsked(ASKED), "undo", {}),
    (UndoPart(ASKED, ("a", "pick[3]")), "undo-part", {"steps": ["a", "pick[3]"]}),
    (Cancel(ASKED, undo=False), "cancel", {"undo": False}),
    (
        Resolve(ASKED, "a", did=True, result={"id": 1}),
        "resolve",
        {"step": "a", "outcome": "did", "result": {"id": 1}},
    ),
    (Resolve(ASKED, "a", did=False), "resolve", {"step": "a", "outcome": "did-not"}),
    (Extend(ASKED, 60, "a"), "extend", {"step": "a", "seconds": 60}),
    (RunNow(ASKED), "run", {}),
    (Move(ASKED, "0a" * 32), "move", {"plan": "0a" * 32}),
    (Reconcile(ASKED, 1_800_000_000_000), "reconcile", {"restoredTo": 1_800_000_000_000}),
    (Signalled(ASKED, "paid", {"a": 1}), "signal", {"name": "paid", "data": {"a": 1}}),
    (Signalled(ASKED, "paid"), "signal", {"name": "paid", "data": None}),
    (Erase(ASKED), "erase", {}),
]


@pytest.mark.parametrize(("event", "kind", "payload"), WIRE)
def test_the_fields_on_the_wire_are_those_of_the_contract(
    event: OperatorEvent, kind: str, payload: dict[str, Json]
) -> None:
    assert json.loads(command_of("ord-1", event).body()) == {
        "version": 1,
        "kind": kind,
        "taskId": "ord-1",
        **WHO,
        **payload,
    }


def message(kind: str, **fields: Json) -> dict[str, Json]:
    return {
        "version": 1,
        "kind": kind,
        "taskId": "ord-1",
        "commandId": "c-1",
        "by": "ann",
        **fields,
    }


def problems_of(value: dict[str, Json]) -> set[str]:
    try:
        read_command(json.dumps(value))
    except InvalidMessage as refusal:
        return {problem.path for problem in refusal.problems if problem.message}
    return set()


@pytest.mark.parametrize(
    ("found", "event"),
    [
        (message("resubmit"), Resubmit(CommandSource("c-1", "ann"))),
        (message("resubmit", steps=None), Resubmit(CommandSource("c-1", "ann"))),
        (message("cancel"), Cancel(CommandSource("c-1", "ann"), undo=True)),
        (
            message("resolve", step="a", outcome="did"),
            Resolve(CommandSource("c-1", "ann"), "a", did=True),
        ),
        (message("extend", seconds=9, step=None), Extend(CommandSource("c-1", "ann"), 9)),
        (message("undo", reason=None), UndoAsked(CommandSource("c-1", "ann"))),
        (message("run", laterField=[1]), RunNow(CommandSource("c-1", "ann"))),
    ],
)
def test_what_may_be_left_out_has_its_meaning(found: dict[str, Json], event: OperatorEvent) -> None:
    assert read_command(json.dumps(found)).event == event


def test_an_undo_of_a_part_names_steps() -> None:
    assert problems_of(message("undo-part")) == {"steps"}
    assert problems_of(message("undo-part", steps=[])) == {"steps"}


def test_a_move_names_a_plan() -> None:
    assert problems_of(message("move")) == {"plan"}
    assert problems_of(message("move", plan="newest")) == {"plan"}


def test_a_rejected_signal_without_its_data_counts_only_once_a_person_adds_it() -> None:
    body = signal_without_data("ord-1", "paid", "pay-7")
    with pytest.raises(InvalidMessage, match="data: missing"):
        read_command(body)
    command = read_command(json.dumps({**json.loads(body), "data": {"amount": 40}}))
    asked = CommandSource("pay-7", "application")
    assert command == Command("signal", "ord-1", Signalled(asked, "paid", {"amount": 40}))


@pytest.mark.parametrize("kind", sorted(COMMAND_KINDS.values()))
def test_whoever_asks_says_who_they_are_and_numbers_the_command(kind: str) -> None:
    found = message(
        kind, step="a", outcome="did", seconds=1, restoredTo=1, plan="0a" * 32, name="paid"
    )
    found |= {"steps": ["a"], "data": None}
    assert problems_of(found) == set()
    for name in ("commandId", "by"):
        missing = {key: value for key, value in found.items() if key != name}
        assert problems_of(missing) == {name}
        assert problems_of({**found, name: ""}) == {name}
    assert problems_of({**found, "seenVersion": "4"}) == {"seenVersion"}
    assert problems_of({**found, "seenVersion": -1}) == {"seenVersion"}
    assert problems_of({**found, "reason": 3}) == {"reason"}


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (message("resubmit", steps="a"), {"steps"}),
        (message("resubmit", plan="newest"), {"plan"}),
        (message("resubmit", plan="A" * 64), {"plan"}),
        (message("resubmit", plan="a" * 63), {"plan"}),
        (message("resubmit", plan=7), {"plan"}),
        (message("resubmit", steps=["a", 3]), {"steps"}),
        (message("resubmit", steps=[""]), {"steps"}),
        (message("resubmit", freshKey="yes", again=1), {"freshKey", "again"}),
        (message("resubmit", input={"currency": "EUR"}), {"input"}),
        (message("resubmit", input=["currency"]), {"input"}),
        (message("resubmit", input=[{"value": 1}]), {"input"}),
        (message("resubmit", input=[{"path": ["a"], "value": 1, "old": 2}]), {"input"}),
        (message("resubmit", input=[{"path": []}]), {"input"}),
        (message("resubmit", input=[{"path": "a"}]), {"input"}),
        (message("resubmit", input=[{"path": [0]}]), {"input"}),
        (message("resubmit", input=[{"path": ["a", -1]}]), {"input"}),
        (message("resubmit", input=[{"path": ["a", True]}]), {"input"}),
        (message("resubmit", input=[{"path": ["a", 1.0]}]), {"input"}),
        (message("cancel", undo=None), {"undo"}),
        (message("cancel", undo="no"), {"undo"}),
        (message("resolve"), {"step", "outcome"}),
        (message("resolve", step="a", outcome="maybe"), {"outcome"}),
        (message("resolve", step="a", outcome=["did"]), {"outcome"}),
        (message("extend"), {"seconds"}),
        (message("extend", seconds=0), {"seconds"}),
        (message("extend", seconds=LONGEST_EXTENSION + 1), {"seconds"}),
        (message("extend", seconds=1.5), {"seconds"}),
        (message("extend", seconds=True, step=""), {"seconds", "step"}),
        (message("signal"), {"name", "data"}),
        (message("signal", name="paid"), {"data"}),
        ({**message("signal", name="paid", data=None), "commandId": "x" * 65}, {"commandId"}),
        ({**message("signal", name="paid", data=None), "commandId": "a b"}, {"commandId"}),
        (message("delete"), {"kind"}),
        (message(""), {"kind"}),
    ],
)
def test_what_is_wrong_is_named(found: dict[str, Json], wrong: set[str]) -> None:
    assert problems_of(found) == wrong


def test_the_stacks_own_commands_say_no_more_than_their_kind() -> None:
    for kind in ("start", "inspect"):
        command = Command(kind, "ord-1")
        assert json.loads(command.body()) == {"version": 1, "kind": kind, "taskId": "ord-1"}
        assert read_command(command.body()) == command


@pytest.mark.parametrize("more", [0, 1])
def test_texts_that_the_record_keeps_are_cut(more: int) -> None:
    asked = CommandSource(
        "c" * (LONGEST_COMMAND_ID + more),
        "b" * (LONGEST_SENDER + more),
        "r" * (LONGEST_REASON + more),
    )
    found = read_command(command_of("ord-1", RunNow(asked)).body()).event
    assert found == RunNow(
        CommandSource("c" * LONGEST_COMMAND_ID, "b" * LONGEST_SENDER, "r" * LONGEST_REASON)
    )
