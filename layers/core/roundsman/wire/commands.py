"""Commands: messages that ask the scheduler to do something with one task.

The stack itself sends `start` and `inspect`. Operators and applications send the other commands.
Such a command states its sender and reason. It is idempotent by its id. If it names the version of
the task that its sender saw, it is refused when the task has another version.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from roundsman.model.corrections import Correction, changes_json, read_changes
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
from roundsman.model.field_table import Field, FieldTable, Kind, any_of
from roundsman.model.json import Json
from roundsman.model.record_limits import LONGEST_SIGNAL_ID
from roundsman.model.senders import LONGEST_SENDER
from roundsman.wire.fields import (
    ANY,
    FLAG,
    NUMBER,
    OPTIONAL_NUMBER,
    OPTIONAL_TEXT,
    TEXT,
    TEXTS,
    Fields,
    MessageTable,
    one_of,
)
from roundsman.wire.messages import TASK_ID_TEXT, message_body, message_fields

START, INSPECT = "start", "inspect"
OUTCOMES = ("did", "did-not")
APPLICATION = "application"
"""The author of commands from the SubmissionQueue in the task's history."""
PLAN_HASH = re.compile("[0-9a-f]{64}")
SIGNAL_ID = re.compile(rf"[!-~]{{1,{LONGEST_SIGNAL_ID}}}")
"""What the id of a signal may be."""
SIGNAL_ID_WORDS = f"1 to {LONGEST_SIGNAL_ID} ASCII letters, digits or punctuation, no spaces"
LONGEST_COMMAND_ID = 128  # characters
LONGEST_REASON = 1_000  # characters
LONGEST_EXTENSION = 30 * 24 * 3600  # seconds; resubmit a task that needs more time


@dataclass(frozen=True, slots=True)
class Command:
    """A command for one task."""

    kind: str
    """The name of the command, for example `resubmit`."""
    task_id: str
    """The id of the task."""
    event: OperatorEvent | None = None
    """The event that the command causes; None for `start` and `inspect`."""

    def body(self) -> str:
        """Return the body of the message."""
        found = COMMAND.written(self)
        if self.event is not None:
            found |= SOURCE.written(self.event.asked) | EVENTS[self.kind].written(self.event)
        if isinstance(self.event, Resolve) and not self.event.did:
            del found["result"]
        return message_body(found)


def command_of(task_id: str, event: OperatorEvent) -> Command:
    """Return the command that causes this event."""
    return Command(COMMAND_KINDS[type(event)], task_id, event)


def signal_without_data(task_id: str, name: str, signal_id: str) -> str:
    """Return the body of the command about a signal whose data is left out.

    It is for a rejected message: no function accepts it until a person adds the data.
    """
    event = Signalled(CommandSource(signal_id, APPLICATION), name)
    found = COMMAND.written(command_of(task_id, event)) | SOURCE.written(event.asked)
    found |= EVENTS["signal"].written(event)
    del found["data"]
    return message_body(found)


def read_command(body: str) -> Command:
    """Read a command from the body of a message. Raises InvalidMessage."""
    fields = message_fields(body)
    command = COMMAND.read(fields)
    table = EVENTS.get(command.kind)
    if table is not None:
        values = table.values(fields)
        event = table.make(asked=SOURCE.read(fields), **values)
        command = replace(command, event=_checked(event, fields))
    fields.done()
    return command


def _checked(event: OperatorEvent, fields: Fields) -> OperatorEvent:
    """Note the problems of the fields together, and return the event."""
    if isinstance(event, Resolve):
        if event.did and event.fresh_key:
            fields.problem("freshKey", "a step that happened keeps its key")
        return event if event.did else replace(event, result=None)
    if isinstance(event, Signalled) and not SIGNAL_ID.fullmatch(event.asked.command_id):
        fields.problem("commandId", f"must be {SIGNAL_ID_WORDS}")
    return event


def _cut_text(longest: int) -> "Kind[Fields, Json, str]":
    """The kind of a text that the record of a task keeps, so a longer one is cut when it is read.

    `longest` is in characters.
    """
    return Kind("text", lambda fields, name: fields.text(name)[:longest])


def _read_reason(fields: Fields, name: str) -> str:
    return (fields.optional_text(name) or "")[:LONGEST_REASON]


def _read_sender(fields: Fields, name: str) -> str | None:
    """Read who sent an event, cut to the length of the longest that AWS gives.

    It is believed of few senders (`roundsman.model.senders`), and no command is rejected for it.
    """
    text = fields.optional_text(name)
    return text and text[:LONGEST_SENDER]


def _read_plan_hash(fields: Fields, name: str) -> str | None:
    text = fields.optional_text(name)
    if text is not None and not PLAN_HASH.fullmatch(text):
        fields.problem(name, "must be the hash of a plan: 64 hexadecimal digits")
    return text


def _read_hash(fields: Fields, name: str) -> str:
    fields.text(name)  # it is required
    return _read_plan_hash(fields, name) or ""


def _read_part(fields: Fields, name: str) -> tuple[str, ...]:
    steps = fields.texts(name)
    if not steps:
        fields.problem(name, "must name at least one step")
    return steps


def _read_input(fields: Fields, name: str) -> Correction:
    try:
        return read_changes(fields.optional(name) or [])
    except ValueError as error:
        fields.problem(name, str(error))
        return ()


def _read_seconds(fields: Fields, name: str) -> int:
    seconds = fields.number(name)
    if not 1 <= seconds <= LONGEST_EXTENSION:
        fields.problem(name, f"must be 1 to {LONGEST_EXTENSION}")
    return seconds


SOURCE: "MessageTable[CommandSource]" = FieldTable(
    CommandSource,
    Field("commandId", "command_id", _cut_text(LONGEST_COMMAND_ID)),
    Field("by", "by", _cut_text(LONGEST_SENDER)),
    Field("reason", "reason", Kind("text", _read_reason), ""),
    Field("seenVersion", "seen_version", OPTIONAL_NUMBER, None),
    Field("forwardedFor", "forwarded_for", Kind("text", _read_sender), None),
)
"""The fields of every command of a person."""
EVENTS: "Mapping[str, MessageTable[OperatorEvent]]" = {
    "resubmit": FieldTable(
        Resubmit,
        Field("steps", "steps", TEXTS, (), always=True),
        Field("freshKey", "fresh_key", FLAG, default=False, always=True),
        Field("again", "again", FLAG, default=False, always=True),
        Field("plan", "plan", Kind("64 hexadecimal digits", _read_plan_hash), None),
        Field("input", "changes", Kind("list of changes", _read_input, changes_json), ()),
        Field("used", "used", FLAG, default=False),
        Field("notDone", "not_done", TEXTS, ()),
    ),
    "undo": FieldTable(UndoAsked),
    "undo-part": FieldTable(
        UndoPart, Field("steps", "steps", Kind("list of texts", _read_part, list))
    ),
    "cancel": FieldTable(Cancel, Field("undo", "undo", FLAG, default=True, always=True)),
    "resolve": FieldTable(
        Resolve,
        Field("step", "step", TEXT),
        Field(
            "outcome",
            "did",
            Kind(
                any_of(OUTCOMES),
                lambda fields, name: fields.one_of(name, OUTCOMES) == "did",
                lambda did: OUTCOMES[not did],
            ),
        ),
        Field("freshKey", "fresh_key", FLAG, default=False),
        Field("result", "result", ANY, None, always=True),  # only with the outcome `did`
    ),
    "extend": FieldTable(
        Extend,
        Field("seconds", "seconds", Kind(f"1 to {LONGEST_EXTENSION}", _read_seconds)),
        Field("step", "step", OPTIONAL_TEXT, None, always=True),
    ),
    "run": FieldTable(RunNow),
    "move": FieldTable(Move, Field("plan", "plan", Kind("64 hexadecimal digits", _read_hash))),
    "reconcile": FieldTable(Reconcile, Field("restoredTo", "restored_to", NUMBER)),
    "signal": FieldTable(
        Signalled,
        Field("name", "name", TEXT),
        Field("data", "data", ANY),
    ),
    "erase": FieldTable(Erase),
}
"""The further fields of each command of a person, by the kind of the command."""
COMMAND: "MessageTable[Command]" = FieldTable(
    Command,
    Field("kind", "kind", one_of(START, INSPECT, *EVENTS)),
    Field("taskId", "task_id", TASK_ID_TEXT),
)
"""The fields of every command."""
