"""Records the results of `make verify`: the counts of each part, and the sources that passed.

    python -m tools.verified begin [--smaller WHY]   # delete the results of the last run
    python -m tools.verified part [--again] NAME REPORT -- COMMAND ...
    python -m tools.verified finish                  # write docs/verified.json if all parts passed
    python -m tools.verified status                  # print the number of unverified commits

A part is a command that writes a report: JUnit XML from pytest, otherwise one JSON object. The exit
code of the part is that of the command. With --again, a part that has passed is not run; of a part
of pytest that has failed, the failed tests are run, and the report has their new results. `finish`
writes nothing and fails if a part failed or did not run, or if the sources changed during the run.
It writes nothing and succeeds if the run was a smaller one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from tools.failed_again import complete, failed_tests
from tools.sources import SOURCES, NoHistory, hash_here, since
from tools.totals import totals_of

PROJECT = Path(__file__).resolve().parent.parent
ACCOUNT = Path("docs/verified.json")
REPORTS = Path(".cache/reports/verify")
PARTS = ("in-process", "servers", "proof", "mutants", "engine-mutants", "soak")
"""The parts of `make verify`; a run without one of them verifies nothing."""

NARROWING = ("PYTEST_ADDOPTS", "CRASH_ONLY", "EXPLORATION_RECORD")
"""Environment variables that exclude tests or let them pass."""


@dataclass(frozen=True, slots=True)
class Part:
    """The result of one part."""

    name: str
    passed: bool
    seconds: int
    """The duration."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The numbers in the report, by name."""

    def sentence(self) -> str:
        """Return the result as a line for people."""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        result = "passed" if self.passed else "FAILED"
        return f"{self.name}: {result} in {self.seconds} s: {counts or 'nothing counted'}"


class NotVerified(Exception):
    """The run verified nothing; the message is a sentence with the reason."""


def begin(project: Path, smaller: str) -> None:
    """Delete the results of the last run, and record the hash of the sources for this run.

    `smaller` is the reason why this run proves less than a whole run; empty for a whole run.
    """
    smaller = " ".join([smaller, *(name for name in NARROWING if os.environ.get(name))]).strip()
    folder = project / REPORTS
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    begun = {"sources": hash_here(project), "at": time.time(), "smaller": smaller}
    (folder / "begun.json").write_text(json.dumps(begun))


def run_again(project: Path, name: str, report: Path, command: Sequence[str]) -> int:
    """Run of the part what has not passed, and return the exit code.

    That is for a change of tests only: `finish` notices one of the sources. Raises NotVerified if
    an environment variable would exclude tests or let them pass.
    """
    if narrowed := [name for name in NARROWING if os.environ.get(name)]:
        raise NotVerified(f"{', '.join(narrowed)} must not be set")
    before, file = _part(project / REPORTS / f"{name}.part.json"), project / report
    if before is not None and before.passed:
        print(f"verify: {before.sentence()}", flush=True)
        return 0
    is_of_pytest = file.suffix == ".xml" and file.exists()
    failed = failed_tests(file) if before is not None and is_of_pytest else []
    if before is None or not failed:
        return run_part(project, name, report, command)
    first = file.rename(file.with_suffix(".first.xml"))
    began = time.monotonic()
    code = subprocess.run([*command, *failed], cwd=project, check=False).returncode
    complete(file, first)
    first.unlink()
    return _record(project, name, report, code, before.seconds + round(time.monotonic() - began))


def run_part(project: Path, name: str, report: Path, command: Sequence[str]) -> int:
    """Run the command, store the counts of its report, and return its exit code.

    Returns 1 if the command succeeds, but its report is missing or contains failed or skipped
    tests.
    """
    began = time.monotonic()
    (project / report).unlink(missing_ok=True)
    code = subprocess.run(command, cwd=project, check=False).returncode
    return _record(project, name, report, code, round(time.monotonic() - began))


def _record(project: Path, name: str, report: Path, code: int, seconds: int) -> int:
    counts = counted(project / report)
    passed = code == 0 and bool(counts) and not counts.get("failed") and not counts.get("skipped")
    part = Part(name, passed, seconds, counts)
    (project / REPORTS / f"{name}.part.json").write_text(json.dumps(asdict(part)))
    print(f"verify: {part.sentence()}", flush=True)
    return code or (0 if passed else 1)


def counted(report: Path) -> dict[str, int]:
    """Return the numbers in a report, by name; empty if it is missing or incomplete.

    For JUnit XML, these are the numbers of tests, and for each integer property that tests have
    recorded, its sum.
    """
    try:
        if report.suffix == ".xml":
            return {**totals_of(report), **_recorded(report)}
        counts = json.loads(report.read_text())
    except (OSError, ValueError, ET.ParseError):
        return {}
    return {name: count for name, count in counts.items() if type(count) is int}


def _recorded(report: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    # pytest has just written this report, so no untrusted XML is parsed.
    for each in ET.parse(report).getroot().iter("property"):  # noqa: S314
        name, value = each.get("name", ""), each.get("value", "")
        if name and value.isdecimal():
            found[name] += int(value)
    return found


def finish(project: Path) -> str:
    """Write docs/verified.json if all parts passed, and return a text for people.

    For a smaller run, nothing is written. Raises NotVerified if a part failed or did not run, or if
    the sources changed during the run.
    """
    folder = project / REPORTS
    try:
        begun = json.loads((folder / "begun.json").read_text())
    except OSError:
        raise NotVerified("no run was begun: make verify does all of it") from None
    parts = {name: _part(folder / f"{name}.part.json") for name in PARTS}
    missing = [name for name, part in parts.items() if part is None]
    found = [part for part in parts.values() if part is not None]
    failed = [part.name for part in found if not part.passed]
    if failed or missing:
        reasons = [f"failed: {', '.join(failed)}"] if failed else []
        reasons += [f"not run: {', '.join(missing)}"] if missing else []
        raise NotVerified("; ".join(reasons))
    sources = hash_here(project)
    if sources != begun["sources"]:
        raise NotVerified("the engine's sources have changed while it ran: run it again")
    lines = [part.sentence() for part in found]
    if begun["smaller"]:
        lines.append(f"Nothing is written: this run was a smaller one ({begun['smaller']}).")
        return "\n".join(lines)
    seconds = round(time.time() - begun["at"])
    _write(project, sources, seconds, found)
    lines.append(f"All passed in {seconds / 60:.0f} min; {ACCOUNT} says so of {sources}")
    return "\n".join(lines)


def _part(file: Path) -> Part | None:
    try:
        return Part(**json.loads(file.read_text()))
    except OSError:
        return None


def _write(project: Path, sources: str, seconds: int, parts: Sequence[Part]) -> None:
    before = verified(project)
    before.pop(sources, None)
    account = {
        "sources": sources,
        "of": list(SOURCES),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": seconds,
        "parts": [
            {"name": part.name, "seconds": part.seconds, "counts": dict(part.counts)}
            for part in parts
        ],
        "before": before,
    }
    (project / ACCOUNT).write_text(json.dumps(account, indent=2) + "\n")


def _account(project: Path) -> dict[str, object]:
    try:
        return cast("dict[str, object]", json.loads((project / ACCOUNT).read_text()))
    except OSError:
        return {}


def _date(project: Path) -> str:
    return str(_account(project).get("date", ""))


def last_verified(project: Path) -> str | None:
    """Return the hash of the sources that were verified last; None if there are none."""
    found = _account(project).get("sources")
    return None if found is None else str(found)


def verified(project: Path) -> dict[str, str]:
    """Return all verified hashes with their dates, including the last one."""
    account = _account(project)
    found = dict(cast("Mapping[str, str]", account.get("before", {})))
    if account:
        found[str(account["sources"])] = str(account["date"])
    return found


def status(project: Path) -> str:
    """Return a sentence that compares the sources with those that were verified last."""
    last = last_verified(project)
    if last is None:
        state = "make verify has never passed whole"
    elif hash_here(project) == last:
        return f"these sources were verified on {_date(project)}"
    else:
        state = f"make verify passed last on {_date(project)}, with other sources"
    try:
        gone = since(project, last)
    except NoHistory as problem:
        return f"{state}; how many commits are unverified is not known: {problem}"
    more = "" if gone.found or not gone.shallow else " at least, in this shallow clone"
    edited = ", and changes that are not committed" if gone.edited else ""
    commits = "1 commit" if gone.commits == 1 else f"{gone.commits} commits"
    return f"{state}; unverified: {commits} that touch the engine's sources{more}{edited}"


def main(arguments: Sequence[str] | None = None, project: Path = PROJECT) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.verified", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", required=True)
    beginning = verbs.add_parser("begin")
    beginning.add_argument(
        "--smaller", default="", help="why this run proves less than a whole one"
    )
    part = verbs.add_parser("part")
    part.add_argument("--again", action="store_true", help="run only what has not passed")
    part.add_argument("name", choices=PARTS)
    part.add_argument("report", type=Path)
    part.add_argument("command", nargs=argparse.REMAINDER)
    verbs.add_parser("finish")
    verbs.add_parser("status")
    asked = parser.parse_args(arguments)
    try:
        return _carried_out(asked, project)
    except NotVerified as why:
        print(f"verify: nothing is written: {why}")
        return 1


def _carried_out(asked: argparse.Namespace, project: Path) -> int:
    match asked.verb:
        case "begin":
            begin(project, asked.smaller)
        case "part":
            command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
            runs = run_again if asked.again else run_part
            return runs(project, asked.name, asked.report, command)
        case "finish":
            print(finish(project))
        case _:
            print(f"Verified: {status(project)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
