"""The diagrams in the documentation are those of the tables."""

from pathlib import Path

import pytest

from roundsman.engine.transitions import STEPS, TASKS, MayBecome, Move, StepEvent, TaskEvent
from roundsman.model.states import ProcessState, TaskState
from tools.state_diagram import BEGIN, DOCUMENT, END, diagrams, main, written

BARE = f"# Title\n\n{BEGIN}\n{END}\n\nMore.\n"


def test_the_diagrams_in_the_documentation_are_up_to_date(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_every_entry_that_changes_something_is_drawn() -> None:
    arrows = [line.strip() for line in diagrams().splitlines() if "-->" in line]
    drawn = {
        (ends, event)
        for ends, _, events in (line.partition(": ") for line in arrows)
        for event in events.split(" / ")
    }
    for (before, event), entry in TASKS.items():
        after = entry.states if isinstance(entry, MayBecome) else frozenset[TaskState]()
        for state in after:
            assert (f"{before.value} --> {state.value}", event.value) in drawn
    for (step, happened), move in STEPS.items():
        if isinstance(move, Move):
            assert (f"{step.value} --> {move.to.value}", happened.value) in drawn
    assert ("Processing --> Processed", StepEvent.SUCCEEDED.value) in drawn
    assert ("Scheduled --> Pending", TaskEvent.INSPECT.value) in drawn
    assert ("[*] --> Pending", "") in drawn
    assert (f"{TaskState.ARCHIVED.value} --> [*]", "") in drawn
    assert (f"{ProcessState.SKIPPED.value} --> [*]", "") in drawn


def test_writing_replaces_what_is_between_the_markers_and_nothing_else(tmp_path: Path) -> None:
    document = tmp_path / "architecture.md"
    document.write_text(BARE, encoding="utf-8")
    assert main(["--check", "--document", str(document)]) == 1
    assert document.read_text(encoding="utf-8") == BARE
    assert main(["--document", str(document)]) == 0
    text = document.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n" + BEGIN)
    assert text.endswith(END + "\n\nMore.\n")
    assert diagrams() in text
    assert main(["--check", "--document", str(document)]) == 0
    assert written(text) == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}", BARE + BARE, f"{BEGIN}{END}{END}"])
def test_a_document_without_its_markers_is_refused_with_a_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "architecture.md"
    document.write_text(text, encoding="utf-8")
    assert main(["--document", str(document)]) == 1
    assert "architecture.md: the document needs the lines" in capsys.readouterr().err
    assert document.read_text(encoding="utf-8") == text


def test_a_document_that_is_not_there_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", "--document", str(tmp_path / "none.md")]) == 1
    assert "none.md: " in capsys.readouterr().err


def test_the_document_is_the_repositorys_own() -> None:
    assert DOCUMENT.parts[-3:] == ("docs", "reference", "states.md")
