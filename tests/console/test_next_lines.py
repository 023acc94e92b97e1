"""What `show` and `ls` print of tasks that have ended, and which commands they name next."""

from dataclasses import replace

from rich.console import Console

from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from roundsman_console.faces.commands.show import next_lines, steps_table
from roundsman_console.facts.orders.reasons import reason_of
from tests.console.step_samples import AT, facts, task
from tests.support.steps import changed_step, step_record

REFUSED = step_record(
    process_state=ProcessState.ERROR, started_at=AT, error=StepError("Refused", "no")
)


def ended(state: TaskState, *, undo: bool = False, record: StepRecord = REFUSED) -> Task:
    """A task that ended a while ago, with this record of its first step."""
    ending = Termination(state, "why it ended", undo=undo)
    return replace(task({"charge": record}), state=state, ended_at=AT, ending=ending, lane="ended")


def test_a_failed_task_is_tried_again_or_corrected() -> None:
    assert next_lines(ended(TaskState.ARCHIVED)) == [
        "Next, to try the failed steps again: roundsman resubmit ord-1 --reason '...'",
        "With a corrected input, shown first: roundsman resubmit ord-1 --set PATH=VALUE --dry-run "
        "--reason '...'",
    ]


def test_a_failed_undo_is_continued() -> None:
    assert next_lines(ended(TaskState.ARCHIVED, undo=True)) == [
        "Next, to continue the undo: roundsman resubmit ord-1 --reason '...'"
    ]


def test_an_undone_task_begins_again() -> None:
    assert next_lines(ended(TaskState.UNDONE, undo=True)) == [
        "Next: roundsman resubmit ord-1 --again --reason '...'"
    ]


def shown(record: StepRecord) -> list[str]:
    """The row of the step, word by word."""
    console = Console(width=100)
    with console.capture() as capture:
        console.print(steps_table(facts(ended(TaskState.ARCHIVED, record=record))))
    return next(line for line in capture.get().splitlines() if "charge" in line).split()


def test_a_refusal_is_for_good_and_a_failure_is_counted() -> None:
    assert shown(REFUSED)[:4] == ["charge", "Error", "for", "good"]
    assert shown(replace(REFUSED, failure_count=3))[:5] == ["charge", "Error", "3", "of", "3"]
    waits = changed_step(REFUSED, process_state=ProcessState.PENDING)
    assert shown(waits)[:3] == ["charge", "Pending", "0"]


def test_a_list_gives_the_reason_of_an_end_and_what_an_open_order_waits_for() -> None:
    assert reason_of(ended(TaskState.ARCHIVED)) == "why it ended"
    assert reason_of(replace(ended(TaskState.UNDONE), state=TaskState.COMPLETED, ending=None)) == ""
    assert reason_of(task({})) == "waits for the scheduler"
