"""Replaces the vendored files of an application, and the version that it names."""

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypedDict

from roundsman_console.base.errors import ConsoleError
from roundsman_dev.project.files import read_text, replace_files, stacks

RECORD = Path("stacks") / "release.json"
REQUIREMENTS = Path("requirements.txt")
VENDOR = Path("vendor")
FIND_VENDORED = f"--find-links {VENDOR}\n"

_PIN = re.compile(r"^(roundsman(?:\[[a-z,]*\])?==)\S+", re.MULTILINE)
_MADE_BY_INIT = "Run this in a folder that `roundsman init` made."


class Release(TypedDict):
    """A line of releases.json."""

    version: str
    direct_from: str
    """The oldest release from which an application can be upgraded to this one in one step."""


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade changes."""

    before: str
    """The release that the application has."""
    after: str
    direct_from: str
    """The oldest release that can be upgraded to `after`; those between need not be installed."""
    changes: Mapping[Path, str | bytes | None]
    """The new contents of each file that changes; None for a file that is removed."""
    difference: str
    """The changes as a unified diff."""


def record_of(version: str, contents: Mapping[Path, str]) -> str:
    """Return the text of the record of the vendored files."""
    hashes = {path.name: _hash(text) for path, text in sorted(contents.items())}
    return json.dumps({"version": version, "files": hashes}, indent=2) + "\n"


def plan_upgrade(project: Path, version: str, wheel: Path | None = None) -> Upgrade:
    """Return what an upgrade to the installed release changes; nothing is written.

    `wheel` is the file that this release was installed from, if it is on no index; the application
    gets a copy. Raises ConsoleError if a vendored file was edited, a file cannot be read, or the
    release of the application is too old to skip the releases between.
    """
    before, hashes = _record(project)
    oldest = _oldest(before, version)
    vendored = dict(stacks())
    added = {path for path in vendored if path.name not in hashes and not (project / path).exists()}
    for path, new_text in vendored.items():
        if path in added:  # by a release after the one that the application has
            continue
        text = read_text(project, path, _MADE_BY_INIT)
        # An upgrade that was killed may have written the new text already.
        if text != new_text and hashes.get(path.name) != _hash(text):
            raise ConsoleError(
                f"{path} was edited since it was written, and an upgrade would lose that. Move "
                "what you changed to template.yaml, restore the file, and run the command again."
            )
    new = {
        **vendored,
        RECORD: record_of(version, vendored),
        REQUIREMENTS: _requirements(project, version, vendors=wheel is not None),
    }
    old = {p: "" if p in added else read_text(project, p, _MADE_BY_INIT) for p in new}
    changed = {path: text for path, text in new.items() if old[path] != text}
    wheels = {} if wheel is None or not changed else _wheels(project, wheel)
    difference = [*_difference(old, changed), *_of_wheels(wheels)]
    return Upgrade(before, version, oldest, {**changed, **wheels}, "\n".join(difference))


def edited_files(project: Path) -> list[Path]:
    """Return the vendored files that differ from what `init` or `upgrade` wrote.

    Empty for a project without a record of its release. Raises ConsoleError if a file cannot be
    read.
    """
    if not (project / RECORD).exists():
        return []
    _, hashes = _record(project)
    paths = [path for path, _ in stacks() if path.name in hashes or (project / path).exists()]
    return [path for path in paths if hashes.get(path.name) != _hash(read_text(project, path))]


def apply_upgrade(project: Path, upgrade: Upgrade) -> None:
    """Write the changes: all of them, or none. Raises ConsoleError."""
    replace_files(project, upgrade.changes)


def _oldest(before: str, after: str) -> str:
    """The oldest release that can be upgraded to `after`.

    Raises ConsoleError if `before` cannot.
    """
    text = (files("roundsman_dev") / "project" / "releases.json").read_text(encoding="utf-8")
    releases: list[Release] = json.loads(text)
    oldest = next((each["direct_from"] for each in releases if each["version"] == after), after)
    if _numbers(before) > _numbers(after):
        raise ConsoleError(
            f"The application has release {before}, which is newer than {after}, the one that is "
            f"installed. Install roundsman=={before} or a newer one."
        )
    if _numbers(before) < _numbers(oldest):
        raise ConsoleError(
            f"Release {after} can be reached from {oldest} or later, and this application has "
            f"{before}. Install roundsman=={oldest} and upgrade to it first."
        )
    return oldest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _record(project: Path) -> tuple[str, Mapping[str, str]]:
    """The release of the application, and the hashes of its vendored files by name."""
    try:
        found = json.loads(read_text(project, RECORD, _MADE_BY_INIT))
    except ValueError as error:
        raise ConsoleError(
            f"{RECORD} is not JSON ({error}): restore it from version control."
        ) from error
    match found:
        case {"version": str(version), "files": dict(hashes)} if _numbers(version):
            return version, hashes
    raise ConsoleError(
        f"{RECORD} does not name a release and its files: restore it from version control."
    )


def _requirements(project: Path, version: str, *, vendors: bool) -> str:
    text, pins = _PIN.subn(rf"\g<1>{version}", read_text(project, REQUIREMENTS, _MADE_BY_INIT))
    if not pins:
        raise ConsoleError(
            f"{REQUIREMENTS} has no line such as roundsman[cli,local,testing,ui]==VERSION. Add it "
            "and run the command again."
        )
    if vendors and FIND_VENDORED not in text:
        return FIND_VENDORED + text
    return text


def _wheels(project: Path, wheel: Path) -> dict[Path, bytes | None]:
    """The new wheel, and None for each older one."""
    try:
        new: dict[Path, bytes | None] = {VENDOR / wheel.name: wheel.read_bytes()}
    except OSError as error:
        raise ConsoleError(f"{wheel} cannot be read: {error.strerror}.") from error
    others = sorted((project / VENDOR).glob("roundsman-*.whl"))
    return new | {VENDOR / each.name: None for each in others if each.name != wheel.name}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _difference(old: Mapping[Path, str], changes: Mapping[Path, str]) -> list[str]:
    lines: list[str] = []
    for path, text in sorted(changes.items()):
        before, after = old[path].splitlines(), text.splitlines()
        lines += difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")
    return lines


def _of_wheels(wheels: Mapping[Path, bytes | None]) -> list[str]:
    verbs = {path: "removes" if data is None else "writes" for path, data in wheels.items()}
    return [f"{verbs[path]} {path}" for path in sorted(wheels)]
