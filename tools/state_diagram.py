"""Draw the state diagrams of docs/reference/states.md from the transition tables.

`python -m tools.state_diagram` writes them between the markers; with `--check` it writes nothing
and fails where the file is not what the tables say, so that the picture cannot drift.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from roundsman.engine.transitions import STEPS, TASKS, MayBecome, Move, StepEvent, TaskEvent
from roundsman.model.states import END_STATES, ProcessState, TaskState

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "states.md"
BEGIN = "<!-- generated: state diagrams; python -m tools.state_diagram writes them -->"
END = "<!-- end of generated -->"

BY_ITSELF = frozenset({TaskEvent.START, TaskEvent.REPLIED, TaskEvent.INSPECT})
BY_PEOPLE = frozenset(
    {
        StepEvent.EXTENDED,
        StepEvent.RESUBMITTED,
        StepEvent.BEGUN_ANEW,
        StepEvent.RESOLVED_DONE,
        StepEvent.RESOLVED_NOT_DONE,
    }
)
AT_REST = frozenset({ProcessState.PROCESSED, ProcessState.ERROR})
"""Where a step may stay for good, though its undo may begin."""

Arrow = tuple[str, str, str]


def diagrams() -> str:
    """The generated block: of tasks and of steps, what happens by itself and what people ask."""
    return "\n".join(
        [
            "### The states of a task",
            "",
            *_fence(_task_lines()),
            "",
            "What a person asks, an operator or the customer who cancels:",
            "",
            *_fence(_drawn(_task_arrows(people=True))),
            "",
            "### The states of a step",
            "",
            *_fence(_step_lines()),
            "",
            "What a person asks:",
            "",
            *_fence(_drawn(_step_arrows(people=True))),
        ]
    )


def _task_arrows(*, people: bool) -> list[Arrow]:
    return [
        (before.value, after.value, event.value)
        for (before, event), entry in TASKS.items()
        if isinstance(entry, MayBecome) and people is (event not in BY_ITSELF)
        for after in sorted(entry.states, key=list(TaskState).index)
    ]


def _task_lines() -> list[str]:
    begin = [f"[*] --> {state.value}" for state in (TaskState.SCHEDULED, TaskState.PENDING)]
    end = [f"{state.value} --> [*]" for state in TaskState if state in END_STATES]
    return [*begin, *_drawn(_task_arrows(people=False)), *end]


def _step_arrows(*, people: bool) -> list[Arrow]:
    return [
        (before.value, entry.to.value, event.value)
        for (before, event), entry in STEPS.items()
        if isinstance(entry, Move) and people is (event in BY_PEOPLE)
    ]


def _step_lines() -> list[str]:
    arrows = _step_arrows(people=False)
    left = {before for before, _, _ in arrows}
    end = [
        f"{state.value} --> [*]" for state in ProcessState if state in AT_REST or state not in left
    ]
    return [f"[*] --> {ProcessState.PENDING.value}", *_drawn(arrows), *end]


def _drawn(arrows: Iterable[Arrow]) -> list[str]:
    """One line for each pair of states, with all that leads from the one to the other."""
    events: dict[tuple[str, str], list[str]] = {}
    for before, after, event in arrows:
        events.setdefault((before, after), []).append(event)
    return [
        f"{before} --> {after}: {' / '.join(found)}" for (before, after), found in events.items()
    ]


def _fence(lines: Iterable[str]) -> list[str]:
    return ["```mermaid", "stateDiagram-v2", *(f"    {line}" for line in lines), "```"]


def written(document: str) -> str:
    """The document with its generated block as the tables are now.

    Raises ValueError where it does not have each marker once, in this order.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in after:
        raise ValueError(f"the document needs the lines {BEGIN!r} and {END!r}, each once")
    return f"{before}{BEGIN}\n\n{diagrams()}\n\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the document. 0 where it is as the tables say."""
    parser = argparse.ArgumentParser(prog="python -m tools.state_diagram", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="the file to write")
    options = parser.parse_args(arguments)
    path: Path = options.document
    try:
        text = path.read_text(encoding="utf-8")
        wanted = written(text)
    except (OSError, ValueError) as problem:
        print(f"{path.name}: {problem}", file=sys.stderr)
        return 1
    if text == wanted:
        return 0
    if options.check:
        print(
            f"{path.name} is not what the transition tables say: run python -m tools.state_diagram",
            file=sys.stderr,
        )
        return 1
    path.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
