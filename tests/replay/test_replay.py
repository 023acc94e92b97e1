"""The engine decides what it decided when the sample was recorded (tools/replay)."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from roundsman.engine import decision as building
from roundsman.engine.decision import DecisionBuilder
from roundsman.engine.due import START_WITHIN, with_due_entry
from roundsman.engine.machine import decide
from roundsman.model.events import Action, Inspect, InspectAt, Start
from roundsman.model.task import Task
from tests.support.machine_world import T0, World, plan, step
from tools.replay.__main__ import main, report
from tools.replay.check import Findings, check_part
from tools.replay.folder import CASES, read_cases
from tools.replay.record import Recorder, decide_again
from tools.replay.sample import SAMPLE, write_sample

IF_MEANT = (
    "The engine decides differently. If that is meant: python -m tools.replay decide "
    "tests/replay/sample, and read the difference in git."
)
Patch = pytest.MonkeyPatch
PROJECT = Path(__file__).parents[2]


def in_words(found: Findings) -> str:
    """What differs, for whoever has changed the engine."""
    return "\n".join([*map(str, found.examples.values()), IF_MEANT])


def test_the_engine_decides_the_sample_as_it_was_recorded() -> None:
    found = check_part(SAMPLE)
    assert found.cases > 300
    assert not found.counts, in_words(found)


def test_the_sample_names_no_folder_of_a_machine() -> None:
    assert '"/' not in (SAMPLE / CASES).read_text()


# --- what differs is reported ---------------------------------------------------------------------


def a_reason(patch: Patch) -> None:
    real = DecisionBuilder.note

    def note(builder: DecisionBuilder, reason: str) -> None:
        real(builder, reason.replace("claimed", "taken"))

    patch.setattr(DecisionBuilder, "note", note)


def an_action(patch: Patch) -> None:
    real = DecisionBuilder.action

    def action(builder: DecisionBuilder, given: Action) -> None:
        real(builder, InspectAt(given.at + 1) if isinstance(given, InspectAt) else given)

    patch.setattr(DecisionBuilder, "action", action)


def a_due_entry(patch: Patch) -> None:
    def later(task: Task, now: int) -> Task:
        found = with_due_entry(task, now)
        return replace(found, due_at=found.due_at + 1)

    patch.setattr(building, "with_due_entry", later)


def an_exception(patch: Patch) -> None:
    patch.setattr(DecisionBuilder, "new_round", None)


def a_record(patch: Patch) -> None:
    real = DecisionBuilder.start_by

    def start_by(builder: DecisionBuilder, at: int, within: int = START_WITHIN) -> int:
        return real(builder, at, within) - 1

    patch.setattr(DecisionBuilder, "start_by", start_by)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (a_reason, "reason, on Start"),
        (an_action, "actions, on Replied: transient"),
        (a_due_entry, "due, on Start"),
        (an_exception, "raises, on Resubmit"),
        (a_record, "CompleteBy of a step that is Pending: waits until, on Replied: transient"),
    ],
)
def test_a_change_is_reported_with_what_differs_and_on_which_event(
    change: Callable[[Patch], None], kind: str, monkeypatch: Patch
) -> None:
    change(monkeypatch)
    found = check_part(SAMPLE)
    assert kind in found.counts
    assert found.examples[kind].test.startswith("tests/")


def test_the_report_has_an_example_of_each_kind_of_difference(
    monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_reason(monkeypatch)
    assert report(check_part(SAMPLE)) == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(
        number for number, line in enumerate(lines) if "  reason, on Start, as in tests/" in line
    )
    assert lines[at + 1].split()[0] == "was"
    assert lines[at + 1].replace("claimed", "taken").split()[1:] == lines[at + 2].split()[1:]
    assert lines[-1].startswith(f"{len([*read_cases(SAMPLE)])} cases, ")


def test_cases_that_are_decided_again_have_what_the_engine_decides_now(
    monkeypatch: Patch, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
    decide_again(folder)
    assert (folder / CASES).read_text() == (SAMPLE / CASES).read_text()
    a_due_entry(monkeypatch)
    decide_again(folder)
    assert not check_part(folder).counts
    monkeypatch.undo()
    assert check_part(folder).counts["due, on Start"]


# --- recording ------------------------------------------------------------------------------------


def test_each_question_is_noted_once_and_the_engine_decides_as_ever() -> None:
    world, file = World(plan(step("a"))), io.StringIO()
    noting, event = Recorder(file).noting(decide), Start(world.claimant())
    for now in (world.now, world.now, world.now + 1):
        world.now = now
        decision = noting(world.plan, world.task, event, now, order=None, jitter=world.jitter)
        assert decision == world.decide(event)
    noted = [json.loads(line) for line in file.getvalue().splitlines()]
    starts = [one for one in noted if one["asked"]["event"]["$type"] == "Start"]
    assert [one["asked"]["now"] for one in starts] == [world.now - 1, world.now]
    assert {one["test"] for one in noted} == {os.environ["PYTEST_CURRENT_TEST"].split(" (")[0]}


def test_of_each_task_one_more_question_is_asked_than_the_tests_do() -> None:
    world, file = World(plan(step("a"), step("b"))), io.StringIO()
    noting = Recorder(file).noting(decide)
    for now in range(T0, T0 + 200):
        noting(world.plan, world.task, Inspect(), now, order=None, jitter=0)
    asked = [json.loads(line)["asked"]["event"] for line in file.getvalue().splitlines()]
    assert len(asked) > 300  # a look that is asked for twice is noted once
    assert {one["$type"] for one in asked} == {
        *("Cancel", "Extend", "Inspect", "Reconcile", "Resolve", "Resubmit", "RunNow", "UndoAsked")
    }
    assert {one["step"] for one in asked if "step" in one} == {"a", "b"}


def test_a_question_that_does_not_read_back_equal_is_not_kept() -> None:
    world, file = World(plan(step("a"))), io.StringIO()
    altered = replace(world.plan, priority="urgent")  # and its text is as before
    recorder, event = Recorder(file), Start(world.claimant())
    recorder.noting(decide)(altered, world.task, event, world.now, order={}, jitter=0)
    assert (recorder.asked, recorder.kept, file.getvalue()) == (1, 0, "")


@pytest.mark.exhaustive
def test_what_tests_ask_is_recorded_and_checked(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "tools.replay", *arguments],
            cwd=PROJECT,
            check=True,
            capture_output=True,
            text=True,
        )
        return ran.stdout

    recorded = run("record", str(tmp_path), "tests/unit/engine/test_steps_start.py")
    count = len([*read_cases(tmp_path)])
    assert f"questions, {count} cases, 0 do not read back equal" in recorded
    assert f"{count} cases, 0 differences of 0 kinds" in run("check", str(tmp_path))
    assert write_sample(tmp_path, tmp_path / "sample") <= count
    assert not check_part(tmp_path / "sample").counts


def test_nothing_is_recorded_into_the_repository(
    monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.replay.record.record", lambda *_: 0)
    monkeypatch.setattr(sys, "argv", ["replay", "record", str(PROJECT / ".cache/replay")])
    with pytest.raises(SystemExit):
        main()
    assert "is in the repository: name a folder outside of it" in capsys.readouterr().err
