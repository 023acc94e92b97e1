"""The line that closes a run of all tests: what it adds up, and what it does not let pass."""

import sys
from pathlib import Path

import pytest

from tools import totals as tool


def report(folder: Path, name: str, **counts: int) -> None:
    attributes = " ".join(f'{key}="{value}"' for key, value in counts.items())
    (folder / name).write_text(f"<testsuites><testsuite {attributes}/></testsuites>")


def run(folder: Path, patch: pytest.MonkeyPatch) -> int:
    patch.setattr(sys, "argv", ["totals", str(folder)])
    return tool.main()


def test_two_runs_are_added_up_to_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, "a.xml", tests=5, failures=0, errors=0, skipped=0)
    report(tmp_path, "b.xml", tests=2, failures=0, errors=0, skipped=0)
    assert run(tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out == "7 passed, 0 failed\n"


def test_a_failure_or_an_error_in_either_run_fails_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, "a.xml", tests=5, failures=1, errors=1, skipped=0)
    report(tmp_path, "b.xml", tests=2, failures=0, errors=0, skipped=0)
    assert run(tmp_path, monkeypatch) == 1
    assert capsys.readouterr().out == "5 passed, 2 failed\n"


def test_a_skipped_test_fails_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, "a.xml", tests=5, failures=0, errors=0, skipped=1)
    assert run(tmp_path, monkeypatch) == 1
    assert "1 tests were skipped" in capsys.readouterr().out


def test_a_run_of_no_tests_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, monkeypatch) == 1
