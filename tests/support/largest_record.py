"""The largest record that the limits of the engine allow, of text that cannot be compressed."""

import random
from collections.abc import Callable
from dataclasses import replace

from roundsman.definition.workflow import MOST_STEPS
from roundsman.engine.operator import KEPT_COMMANDS
from roundsman.model.corrections import Change, corrections_size
from roundsman.model.json import size_in_bytes
from roundsman.model.record_limits import (
    ADDED_LIMIT,
    ERRORS_LIMIT,
    LARGEST_KEPT_RESULT,
    LONGEST_DETAIL,
    LONGEST_MESSAGE,
    LONGEST_SIGNAL_ID,
    LONGEST_WHY,
    LONGEST_WHY_LEFT_OUT,
    MOST_ADDED_UNDOS,
    MOST_AGENTS,
    MOST_OPEN_ADDED,
    MOST_OWED,
    MOST_PART,
    MOST_RECORDS,
    MOST_RESULT_ROWS,
    MOST_SIGNALS,
    MOST_USED_ROUNDS,
    RESULTS_LIMIT,
    SHORT_MESSAGE,
)
from roundsman.model.senders import LONGEST_SENDER
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    AddedStep,
    AfterUndo,
    Effect,
    LeftOut,
    Owed,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.submission.processing import LONGEST_URL
from roundsman.wire.commands import LONGEST_COMMAND_ID, LONGEST_REASON
from tests.contract.samples import NOW, born
from tests.support.steps import step_record

Text = Callable[[int], str]
"""Makes a text of so many bytes of UTF-8."""

MOST_NAMED = MOST_STEPS + MOST_OPEN_ADDED
"""The most steps that the record names: those of the plan, with items, and the added ones that are
not settled."""
MOST_LIVE = MOST_NAMED + MOST_ADDED_UNDOS
"""The most steps that the record has at once, with settled ones whose undo has begun since."""
LATE = 10**13 - 1  # an instant with as many digits as any in this millennium
MANY = 10**8 - 1  # a count that no task reaches


def control_characters(dice: random.Random) -> Text:
    """Text that is seven times as long as JSON, and hardly compresses."""
    return lambda size: "".join(chr(dice.randrange(1, 32)) for _ in range(size))


def ideographs(dice: random.Random) -> Text:
    """Text of three bytes a character."""
    return lambda size: "".join(chr(dice.randrange(0x4E00, 0x9FA5)) for _ in range(size // 3))


def letters(dice: random.Random) -> Text:
    return lambda size: "".join(chr(dice.randrange(33, 127)) for _ in range(size))


def largest_task(text: Text) -> Task:
    """The task. Each limit is used up, also where two of them exclude each other."""
    names = [
        f"s{number:039d}[{number % 100:02d}]" for number in range(MOST_RECORDS + MOST_ADDED_UNDOS)
    ]
    whole = ERRORS_LIMIT // (LONGEST_MESSAGE + 100)
    steps = {}
    for place, name in enumerate(names[:MOST_LIVE]):
        message = text(LONGEST_MESSAGE if place <= whole else SHORT_MESSAGE)
        steps[name] = replace(full_step(text), error=StepError(text(100), message, unexpected=True))
    former = step_record(process_state=ProcessState.SKIPPED, round=MANY, finished_at=LATE)
    steps |= dict.fromkeys(names[MOST_LIVE:], former)
    corrections = ((Change(("note",), text(2_000)),),)
    room = RESULTS_LIMIT - corrections_size(corrections)
    part = room // MOST_LIVE - 64
    for name in names[:MOST_LIVE]:
        # A character of a result may take up to six bytes of JSON, which count.
        result = text(part)
        while size_in_bytes(result) > part:
            result = result[: len(result) * part // size_in_bytes(result) - 1]
        steps[name] = replace(steps[name], result=result)
    return replace(
        born("x" * 128),
        workflow="w" * 40,
        state=TaskState.ARCHIVED,
        version=MANY,
        start_at=NOW + 1,
        retain_for=LATE,
        lane="archived#255",
        due_at=LATE,
        steps=steps,
        owed=tuple(
            Owed("alert", "unexpected_error", MANY, LATE, text(LONGEST_DETAIL))
            for _ in range(MOST_OWED)
        ),
        ending=Termination(
            TaskState.COMPLETED,
            text(LONGEST_WHY),
            names[0],
            undo=True,
            error=StepError(text(100), text(LONGEST_MESSAGE), unexpected=True),
            part=tuple(names[:MOST_PART]),
        ),
        ended_at=LATE,
        expires_at=None,
        priority="urgent",
        tenant="t" * 128,
        reply_to="u" * LONGEST_URL,
        correlation_id="\U0001f600" * 128,
        command_ids=tuple("\U0001f600" * LONGEST_COMMAND_ID for _ in range(KEPT_COMMANDS)),
        fan_outs={f"f{number:039d}": 99 for number in range(MOST_STEPS)},
        added={
            name: AddedStep(text(41), (text(ADDED_LIMIT // MOST_OPEN_ADDED - 85),), text(20))
            for name in names[MOST_STEPS:MOST_NAMED]
        },
        # Their data counts as results, which use up the limit of both.
        signals=tuple(
            UnreadSignal(f"{number:0{LONGEST_SIGNAL_ID}d}", "n" * 40, LATE)
            for number in range(MOST_SIGNALS)
        ),
        signals_left=tuple(f"{number:0{LONGEST_SIGNAL_ID}d}" for number in range(MOST_SIGNALS)),
        credited_until=LATE,
        corrections=corrections,
        used_rounds={f"r{number:039d}[99]": MANY for number in range(MOST_USED_ROUNDS)},
        order_expires=True,
        erased_at=LATE,
        erased_by="\U0001f600" * (LONGEST_SENDER + LONGEST_REASON),
        failure="f-1a2b3c4d",
    )


def full_step(text: Text) -> StepRecord:
    """A record with every field of the situation that has the most: it waits for a callback."""
    return step_record(
        process_state=ProcessState.PROCESSING,
        locked_by=f"{text(8)}-0123456789.{MANY}.{MANY}",
        complete_by=LATE,
        failure_count=MANY,
        started_at=LATE,
        finished_at=LATE,
        agent="a" * 40,
        round=MANY,
        acts_until=LATE,
        outcome_unknown=True,
        heard_at=LATE,
        waiting=True,
        remind_every=LATE,
        remind_at=LATE,
        reminders=MANY,
        reminded_by=f"{text(8)}-0123456789.{MANY}.{MANY}",
        uncounted_timeouts=MANY,
        uncounted_calls=MANY,
        tried=tuple("a" * 40 for _ in range(MOST_AGENTS - 1)),
        after_undo=AfterUndo.NEXT_AGENT,
        effect=Effect.STANDS,
        extra=MANY,
        granted=MANY,
        corrections=MANY,
        retry_until=LATE,
        unexpected_since=LATE,
        waits=MANY,
        polls=MANY,
        polled_since=LATE,
        poll_until=LATE,
        late_since=LATE,
        read_past_at=LATE,
        key_since=LATE,
        key_until=LATE,
        unanswered=True,
        left_out=LeftOut(
            text(LONGEST_WHY_LEFT_OUT), LARGEST_KEPT_RESULT, MOST_RESULT_ROWS - 1, lacks_steps=True
        ),
    )
