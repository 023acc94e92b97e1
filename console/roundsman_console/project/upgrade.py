"""Replaces the vendored stacks of an application, and the version that it names."""

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import cast

from roundsman_console.cli_errors import ConsoleError
from roundsman_console.project.files import replace_files, stacks

RECORD = Path("stacks") / "release.json"
REQUIREMENTS = Path("requirements.txt")
SETTINGS = Path("pyproject.toml")

_PIN = re.compile(r"^(roundsman(?:\[[a-z,]*\])?==)\S+", re.MULTILINE)
_VERSION = re.compile(r'(^\[tool\.roundsman\]\n(?:.*\n)*?version = ")[^"]*(")', re.MULTILINE)


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade changes."""

    before: str
    """The release that the application has."""
    after: str
    changes: Mapping[Path, str]
    """The new text of each file that changes."""
    difference: str
    """The changes as a unified diff."""


def record_of(version: str, contents: Mapping[Path, str]) -> str:
    """Return the text of the record of the vendored files."""
    hashes = {path.name: _hash(text) for path, text in sorted(contents.items())}
    return json.dumps({"version": version, "files": hashes}, indent=2) + "\n"


def plan_upgrade(project: Path, version: str) -> Upgrade:
    """Return what an upgrade to the installed release changes; nothing is written.

    Raises ConsoleError if a vendored file was edited, a file cannot be read, or the release of the
    application is too old to skip the releases between.
    """
    record = _record(project)
    before = str(record["version"])
    _check_direct(before, version)
    new = dict(stacks())
    hashes = cast("Mapping[str, str]", record["files"])
    for path in new:
        text = _text(project, path)
        if path.name in hashes and _hash(text) != hashes[path.name]:
            raise ConsoleError(
                f"{path} was edited since it was written, and an upgrade would lose that. Move "
                "what you changed to template.yaml, restore the file, and run the command again."
            )
    new[RECORD] = record_of(version, dict(stacks()))
    new[REQUIREMENTS] = _PIN.sub(rf"\g<1>{version}", _text(project, REQUIREMENTS))
    new[SETTINGS] = _VERSION.sub(rf"\g<1>{version}\g<2>", _text(project, SETTINGS))
    old = {path: _text(project, path) for path in new}
    changes = {path: text for path, text in new.items() if old[path] != text}
    return Upgrade(before, version, changes, _difference(old, changes))


def apply_upgrade(project: Path, upgrade: Upgrade) -> None:
    """Write the changes: all of them, or none. Raises ConsoleError."""
    replace_files(project, upgrade.changes)


def _check_direct(before: str, after: str) -> None:
    releases = json.loads((files("roundsman_console") / "project" / "releases.json").read_text())
    oldest = next((each["direct_from"] for each in releases if each["version"] == after), after)
    if _numbers(before) > _numbers(after):
        raise ConsoleError(f"The application has release {before}, which is newer than {after}.")
    if _numbers(before) < _numbers(oldest):
        raise ConsoleError(
            f"Release {after} can be reached from {oldest} or later, and this application has "
            f"{before}. Install roundsman=={oldest} and upgrade to it first."
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _record(project: Path) -> Mapping[str, object]:
    try:
        found = json.loads(_text(project, RECORD))
    except ValueError as error:
        raise ConsoleError(f"{RECORD} is not JSON: {error}.") from error
    if not isinstance(found, dict) or not {"version", "files"} <= found.keys():
        raise ConsoleError(f"{RECORD} does not name a release and its files.")
    return found


def _text(project: Path, path: Path) -> str:
    try:
        return (project / path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConsoleError(
            f"{path} cannot be read: {error.strerror}. Run this in a folder that `roundsman init` "
            "made."
        ) from error


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _difference(old: Mapping[Path, str], changes: Mapping[Path, str]) -> str:
    lines: list[str] = []
    for path, text in sorted(changes.items()):
        before, after = old[path].splitlines(), text.splitlines()
        lines += difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)
