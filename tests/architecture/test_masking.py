"""What makes a view of tasks is given tasks as they are shown, with masked values replaced."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "console/roundsman_console"
FACTS = CONSOLE / "facts"
VIEWS = {
    *(FACTS / "order" / f"{name}.py" for name in ("documents", "timeline")),
    FACTS / "group/documents.py",
}
"""What is given a task, and does not choose which."""
MAKES_A_VIEW = re.compile(r"\b(order_document|page_document|order_summary|happenings)\(")
IS_SHOWN = re.compile(r"import (?:\([^)]*|.*)\b(find_shown|shown_tasks|\w+_failures|shown)\b")
READS_THE_TASK_ITSELF = re.compile(r"import (?:\([^)]*|.*)\bfind_task\b")


def sources() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in CONSOLE.rglob("*.py")
        if path not in VIEWS
    }


def test_a_view_of_a_task_is_made_from_the_task_as_it_is_shown() -> None:
    makers = {name: text for name, text in sources().items() if MAKES_A_VIEW.search(text)}
    assert "console/roundsman_console/faces/commands/show.py" in makers
    forgotten = [
        name
        for name, text in makers.items()
        if READS_THE_TASK_ITSELF.search(text) or not IS_SHOWN.search(text)
    ]
    assert forgotten == []
