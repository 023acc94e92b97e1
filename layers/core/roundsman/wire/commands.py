"""Commands: messages that ask the scheduler to do something with one task.

The stack itself sends `start` and `inspect`. Operators and applications send the other commands.
Such a command says who sends it and why. It is idempotent by its id. If it names the version of the
task that its sender saw, it is refused when the task has another version.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roundsman.model.events import (
    COMMAND_KINDS,
    Asked,
    Cancel,
    Extend,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
)
from roundsman.model.json import Json, canonical_json
from roundsman.wire.fields import Fields
from roundsman.wire.messages import VERSION, check_version, read_object, read_task_id

START, INSPECT = "start", "inspect"
OUTCOMES = ("did", "did-not")
LONGEST_EXTENSION = 30 * 24 * 3600  # seconds; resubmit a task that needs more time


@dataclass(frozen=True, slots=True)
class Command:
    """A command for one task."""

    kind: str
    """The name of the command, for example `resubmit`."""
    task_id: str
    event: OperatorEvent | None = None
    """The event that the command causes; None for `start` and `inspect`."""

    def body(self) -> str:
        """Return the body of the message."""
        found: dict[str, Json] = {"version": VERSION, "kind": self.kind, "taskId": self.task_id}
        if self.event is not None:
            found |= _asked_fields(self.event.asked) | _payload(self.event)
        return canonical_json(found)


def command_of(task_id: str, event: OperatorEvent) -> Command:
    """Return the command that causes this event."""
    return Command(COMMAND_KINDS[type(event)], task_id, event)


def read_command(body: str) -> Command:
    """Read a command from the body of a message. Raises InvalidMessage."""
    fields = Fields(read_object(body))
    check_version(fields)
    kind = fields.one_of("kind", (START, INSPECT, *READERS))
    task_id = read_task_id(fields)
    event = READERS[kind](fields, _read_asked(fields)) if kind in READERS else None
    fields.done()
    return Command(kind, task_id, event)


def _read_asked(fields: Fields) -> Asked:
    return Asked(
        command_id=fields.text("commandId"),
        by=fields.text("by"),
        reason=fields.optional_text("reason") or "",
        seen_version=fields.optional_number("seenVersion"),
    )


def _asked_fields(asked: Asked) -> dict[str, Json]:
    found: dict[str, Json] = {"commandId": asked.command_id, "by": asked.by}
    if asked.reason:
        found["reason"] = asked.reason
    if asked.seen_version is not None:
        found["seenVersion"] = asked.seen_version
    return found


def _payload(event: OperatorEvent) -> dict[str, Json]:
    match event:
        case Resubmit():
            return {"steps": list(event.steps), "freshKey": event.fresh_key, "again": event.again}
        case Cancel():
            return {"undo": event.undo}
        case Resolve():
            found: dict[str, Json] = {"step": event.step, "outcome": OUTCOMES[not event.did]}
            if event.fresh_key:
                found["freshKey"] = True
            return found | ({"result": event.result} if event.did else {})
        case Extend():
            return {"step": event.step, "seconds": event.seconds}
        case UndoAsked() | RunNow():
            return {}


def _read_resubmit(fields: Fields, asked: Asked) -> Resubmit:
    if fields.optional("input") is not None:
        # An ignored field would let the sender believe that the correction was made.
        fields.problem("input", "corrections of the order are not taken; send a new order")
    return Resubmit(asked, fields.texts("steps"), fields.flag("freshKey"), fields.flag("again"))


def _read_resolve(fields: Fields, asked: Asked) -> Resolve:
    did = fields.one_of("outcome", OUTCOMES) == "did"
    fresh_key = fields.flag("freshKey")
    if did and fresh_key:
        fields.problem("freshKey", "what did happen keeps its key")
    result = fields.optional("result") if did else None
    return Resolve(asked, fields.text("step"), did, result, fresh_key)


def _read_extend(fields: Fields, asked: Asked) -> Extend:
    seconds = fields.number("seconds")
    if not 1 <= seconds <= LONGEST_EXTENSION:
        fields.problem("seconds", f"must be 1 to {LONGEST_EXTENSION}")
    return Extend(asked, seconds, fields.optional_text("step"))


READERS: Mapping[str, Callable[[Fields, Asked], OperatorEvent]] = {
    "resubmit": _read_resubmit,
    "undo": lambda _, asked: UndoAsked(asked),
    "cancel": lambda fields, asked: Cancel(asked, fields.flag("undo", absent=True)),
    "resolve": _read_resolve,
    "extend": _read_extend,
    "run": lambda _, asked: RunNow(asked),
}
