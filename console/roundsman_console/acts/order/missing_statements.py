"""What an operator must add to a refused resubmission so that it is accepted. Pure.

The engine refuses a command at its first obstacle. A person who removes one obstacle after another
would need a command for each, so the obstacles are looked for here, one decision for each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from roundsman.model.events import OperatorEvent, Resubmit
from roundsman.model.states import ProcessState
from roundsman.model.task import Task

_UNFINISHED = (ProcessState.ERROR, ProcessState.PENDING)


@dataclass(frozen=True, slots=True)
class MissingStatements:
    """What a refused resubmission does not say."""

    why: tuple[str, ...]
    """The refusals; the last one may be one that nothing an operator can state removes."""
    used: bool = False
    """It must say that it changes what finished steps have used."""
    not_done: tuple[str, ...] = ()
    """It must say of these steps that they did not happen."""


def missing_statements(
    task: Task, event: OperatorEvent, refusal: Callable[[OperatorEvent], str | None]
) -> MissingStatements | None:
    """Return what the command does not say; None if it is accepted.

    `refusal` returns why an event is refused, or None.
    """
    why = refusal(event)
    if why is None:
        return None
    found: list[str] = [why]
    added: Sequence[str] = ()
    while isinstance(event, Resubmit):
        for fuller in _fuller(task, event, found[-1]):
            why = refusal(fuller)
            if why != found[-1]:
                added = [*added, *fuller.not_done[len(event.not_done) :]]
                event = fuller
                break
        else:
            break
        if why is None:
            return MissingStatements(tuple(found), event.used, tuple(added))
        found.append(why)
    used = isinstance(event, Resubmit) and event.used
    return MissingStatements(tuple(found), used, tuple(added))


def _fuller(task: Task, event: Resubmit, why: str) -> Iterator[Resubmit]:
    """Yield the command with one statement more that may remove the obstacle `why`."""
    if event.changes and not event.used:
        yield replace(event, used=True)
    if not (event.changes or event.fresh_key):
        return
    for name, record in task.steps.items():
        unfinished = record.process_state in _UNFINISHED and record.started_at is not None
        if unfinished and name not in event.not_done and why.startswith(f"{name}: "):
            yield replace(event, not_done=(*event.not_done, name))
