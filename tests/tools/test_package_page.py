"""The page that an index shows of the package, and the command that builds the package."""

import re
import subprocess
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2]
BUILD = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (PROJECT / BUILD["readme"]).read_text(encoding="utf-8")


def test_the_page_of_the_package_has_no_relative_link() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_page_of_the_package_names_each_extra_of_users() -> None:
    extras = set(BUILD["optional-dependencies"])
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M)) == extras


def test_a_wheel_is_built_without_the_development_environment(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", f"VENV={tmp_path}/venv", "dist"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert " wheel --quiet" in done.stdout
    assert "requirements/dev.txt" not in done.stdout
    assert "pip install" in done.stdout.splitlines()[-1], "the next command is printed last"
