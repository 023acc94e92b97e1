"""The second example: its own tests, in memory, on moto and deployed, and what `init` makes.

They run in another process and in a copy: the example is an application of its own, whose packages
`workflows`, `functions` and `tests` have the names of this project's.
"""

import os
import shutil
import subprocess
import sys
from difflib import ndiff
from pathlib import Path

import pytest

from roundsman_dev.project.create import add_agent, create, plan_workflow
from roundsman_dev.project.files import replace_files

PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples" / "tenant_onboarding"
# As they are installed for a user, without this project's own workflows, functions and tests.
INSTALLED = os.pathsep.join(str(PROJECT / part) for part in ("layers/core", "console"))

AS_MADE = (
    "functions/scheduler/app.py",
    "functions/submission/app.py",
    "functions/supervisor/app.py",
    "layers/core/Makefile",
    "layers/workflows/Makefile",
    "layers/workflows/requirements.txt",
    "layers/workflows/workflows/registry.py",
    "samconfig.toml",
    "tests/test_check.py",
)
"""The files that a user does not edit: they are what `roundsman init` and `add` write today."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, with this project's stacks in place of the link to them."""
    folder = tmp_path_factory.mktemp("examples") / EXAMPLE.name
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    (PROJECT / ".cache").mkdir(exist_ok=True)
    (folder / ".cache").symlink_to(PROJECT / ".cache")  # so that the emulator is installed once
    return folder


def run_tests(folder: Path, marker: str) -> str:
    """Run the example's tests with this marker, which must pass. Returns what pytest printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marker],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": INSTALLED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_the_examples_tests_in_memory_and_on_moto_pass(copy: Path) -> None:
    assert " passed" in run_tests(copy, "not deployed")


@pytest.mark.stack
def test_the_example_is_deployed_and_one_tenant_completes_and_one_is_undone(copy: Path) -> None:
    assert "2 passed" in run_tests(copy, "deployed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An application as the example was begun."""
    folder = tmp_path_factory.mktemp("made") / EXAMPLE.name
    create(
        folder,
        agents=["accounts", "databases", "dns", "compliance", "billing", "mail"],
        version="0.1.0",
    )
    add_agent(folder, "mail_backup")
    replace_files(folder, plan_workflow(folder, "user_invitation", ["accounts"]))
    return folder


@pytest.mark.parametrize("path", AS_MADE)
def test_what_nobody_edits_is_as_init_makes_it(made: Path, path: str) -> None:
    assert (EXAMPLE / path).read_text() == (made / path).read_text()


def test_the_template_is_the_one_that_was_made_with_settings_added(made: Path) -> None:
    """Only the description and the address of the mail providers are replaced."""
    before, after = (
        (folder / "template.yaml").read_text().splitlines() for folder in (made, EXAMPLE)
    )
    replaced = [line[2:].strip() for line in ndiff(before, after) if line.startswith("- ")]
    assert replaced == [
        "Description: 'tenant_onboarding: an application on Roundsman'",
        "ServiceUrl: !Ref ServiceUrl",
        "ServiceUrl: !Ref ServiceUrl",
    ]


def test_the_stacks_are_those_of_this_release() -> None:
    assert (EXAMPLE / "stacks").resolve() == PROJECT / "stacks"
