"""The tests that `roundsman init` writes, deployed on a local AWS, with every kind of wait."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundsman_console.main import app
from tests.emulator.conftest import PROJECT
from tests.support.waiting_application import let_it_wait

pytestmark = [pytest.mark.stack, pytest.mark.long]


def test_the_deployed_tests_of_an_application_pass_with_every_kind_of_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(app, ["init", "shop", "--agent", "stock", "--agent", "payment"])
    assert made.exit_code == 0, made.output
    shop = tmp_path / "shop"
    (shop / ".cache").symlink_to(PROJECT / ".cache")  # the emulator is there
    let_it_wait(shop)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "deployed"]
    passed = subprocess.run(command, cwd=shop, capture_output=True, text=True, check=False)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "2 passed" in passed.stdout
