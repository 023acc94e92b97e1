"""What a state of the model is made of, and its description in words."""

from typing import NamedTuple

from roundsman.engine.due import Lane
from roundsman.model.instants import SECOND
from roundsman.model.task import StepRecord
from tests.exploration.canonical import FRESH, T0, Records, name_of

KEPT = "kept"
"""The id of a message that was handled for the first time just now, and comes again."""


class Mail(NamedTuple):
    """A message on its way, or a supervisor's pass; fields that its kind has no use for are empty.

    `name` is the id of one that was handled before and not acknowledged. `until` is the instant
    from which a request, or a token outside, cannot act any more, 0 where there is none; of a
    reply that the step waits for a callback, how long. `outcome` is the name of a reply's answer,
    and of a request what was reported while its call goes on.
    """

    kind: str
    step: str = ""
    operation: str = ""
    key: str = ""
    lock: str = ""
    until: int = 0
    outcome: str = ""
    name: str = FRESH


class Batch(NamedTuple):
    """Two replies that one process is handed at once, and that were not handled before."""

    first: Mail
    second: Mail
    kind: str = "batch"


PASS, START, INSPECT = Mail("pass"), Mail("start"), Mail("inspect")


class Read(NamedTuple):
    """What a process has read and not acted on: a record of `age` ms and `behind` versions ago.

    Once it has `committed` its decision, what it has not done is to send what follows from it.
    """

    job: Mail
    record: int
    age: int = 0
    behind: int = 0
    committed: bool = False


class State(NamedTuple):
    """`standing` are effects, by step and key; `spent` the keys that were undone.

    `reported` has the kinds of message that reported the task's present end. `repeats`, `copies`,
    `crashes`, `commands` and `holds` are what is left of them. `held` are the agents that take no
    work. `closed` are the locks of claims of which it was proved that nothing happened: no request
    of them acts any more; and the keys under which somebody outside has answered No, and never
    answers Yes. `found_until` has the keys that a service finds for a time only, and until when.
    """

    record: int
    mail: tuple[Mail, ...]
    standing: frozenset[tuple[str, str]]
    spent: frozenset[str]
    reported: frozenset[str]
    reads: tuple[Read, ...]
    repeats: int
    copies: int
    crashes: int
    commands: frozenset[str]
    holds: int
    held: frozenset[str]
    closed: frozenset[str]
    found_until: frozenset[tuple[str, int]] = frozenset()


def in_words(records: Records, state: State) -> str:
    """The record, what is on its way and what stands, in a line."""
    task = records.tasks[state.record]
    parts = [task.state.value]
    if task.lane.startswith(Lane.OPEN):
        parts.append(f"due in {(task.due_at - T0) / SECOND:g} s")
    parts += [f"{name} {_step(record)}" for name, record in task.steps.items()]
    if task.owed:
        parts.append(f"owes {', '.join(owed.name for owed in task.owed)}")
    if state.mail:
        parts.append(f"on their way: {', '.join(map(_mail, state.mail))}")
    if state.reads:
        parts.append(f"{len(state.reads)} about to act")
    if state.held:
        parts.append(f"held: {', '.join(sorted(state.held))}")
    if state.standing:
        parts.append(f"done: {', '.join(sorted(key for _, key in state.standing))}")
    if state.spent:
        parts.append(f"undone: {', '.join(sorted(state.spent))}")
    return "; ".join(parts)


def _step(record: StepRecord) -> str:
    found = record.process_state.value
    if record.agent:
        found += f" at {record.agent}"
    if record.locked_by:
        found += f" by {name_of(record.locked_by)}"
    if record.failure_count:
        found += f", {record.failure_count} failed"
    if record.not_before is not None and record.not_before > T0:
        found += f", not before {(record.not_before - T0) / SECOND:g} s"
    if record.waiting:
        found += ", waits for its callback"
    if record.effect is not None:
        found += f", effect {record.effect}"
    return found


def _mail(mail: Mail) -> str:
    if mail.kind in ("request", "reply", "token"):
        what = f"{mail.kind} {mail.outcome} to {mail.operation} {mail.step}".replace("  ", " ")
        return f"{what} ({name_of(mail.lock)})"
    return f"{mail.kind} {mail.step} ({mail.name})".replace("  ", " ")
