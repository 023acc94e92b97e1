"""Erases the contents of an order whose task has ended, and keeps the record that it was.

What an order contains is in its input, and in all that was made from it or came to it: results,
messages of errors, corrections, the data of signals, and the reasons of commands. They are removed.
What happened when stays: states, times, counts, types of errors and idempotency keys. A task
without its contents cannot be changed any more (`roundsman.engine.transitions.ERASED_TASKS`).

The order row and the rows of the history are other items, and are erased after this decision was
stored (`roundsman.scheduler.erasure`).
"""

from dataclasses import replace

from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.history import ERASE
from roundsman.engine.operator import check_seen_version, remember
from roundsman.engine.step_values import step_values
from roundsman.errors import Refused
from roundsman.model.events import Erase
from roundsman.model.instants import iso
from roundsman.model.task import ERASED, StepError, Termination


def erase(decision: DecisionBuilder, event: Erase) -> None:
    """Remove the contents from the task. Raises Refused if it owes a status or an alert.

    An erased task stays as it is, and only the command is recorded.
    """
    asked, before = event.asked, decision.before
    check_seen_version(decision, asked)
    more = ""
    if before.erased_at is not None:
        more = f"; it was already erased on {iso(before.erased_at)} by {before.erased_by}"
    else:
        if before.owed:
            owed = ", ".join(f"the {one.kind} {one.name}" for one in before.owed)
            raise Refused(f"the task still owes {owed}: erase it after that is sent")
        decision.task = replace(
            before,
            corrections=(),
            limit=None,
            ended_early=before.ended_early and ERASED,
            erased_at=decision.now,
            erased_by=asked.words,
        )
        blank = {name: replace(one, digest="") for name, one in before.added.items()}
        unread = tuple(replace(one, data=None) for one in before.signals)
        decision.task = replace(decision.task, added=blank, signals=unread)
        for name, one in before.steps.items():
            kept = one.left_out and replace(one.left_out, why=ERASED, row=None, whole=None)
            error = _without_message(one.error)
            decision.change(name, step_values(result=None, left_out=kept, error=error))
        decision.ending = _without_reason(before.ending)
    remember(decision, asked)
    decision.record(ERASE, None, None, f"{ERASE} by {asked.words}{more}", asked)


def _without_reason(ending: Termination | None) -> Termination | None:
    return ending and replace(ending, why=ERASED, error=_without_message(ending.error))


def _without_message(error: StepError | None) -> StepError | None:
    return error and replace(error, message=ERASED)
