"""Removes each guard from the source, one at a time, and checks that its named tests fail.

    python -m tools.mutation_check [--only NAME ...] [--report FILE]

The check runs in copies of the project in a temporary folder, one copy for each worker. First, the
named tests must pass on the unmutated source. A mutant survives if a named test passes without the
guard, or fails with an unrelated error such as NameError, which proves nothing. A mutant no longer
applies if its text is not in the source, and must be updated. In all these cases, the exit code is
1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.guards import Mutant, read_guards

PROJECT = Path(__file__).parents[1]
NOT_COPIED = (".git", ".venv", ".cache", ".aws-sam", "__pycache__", ".*_cache", ".hypothesis")
SOURCES = (".", "layers/core", "layers/workflows", "console", "testing")
WORKERS = 2
PATIENCE = 180.0  # seconds for one run of pytest; only a mutant that hangs reaches it
TESTS_FAILED = 1  # pytest's exit code
BROKEN = re.compile(r"(NameError|ImportError|ModuleNotFoundError|SyntaxError|UnboundLocalError)\b")


class MutantVerdict(StrEnum):
    """The result for one mutant."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    NO_LONGER_APPLIES = "NO LONGER APPLIES"


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """A mutant with its verdict, the duration, and the reason of the verdict."""

    mutant: Mutant
    verdict: MutantVerdict
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """The result of one run of pytest."""

    exit_code: int | None
    """None if the run timed out."""
    failed: dict[str, str]
    """The error of each failed test, by the test's node ID."""
    last_words: str
    """The last two lines of the output."""

    def failure_of(self, test: str) -> str | None:
        """Return the error of a test, or of its first failed parameter set; None if it passed."""
        found = [error for node, error in self.failed.items() if node.partition("[")[0] == test]
        return self.failed.get(test) or next(iter(found), None)


class NotApplicable(Exception):
    """The mutant's text is not in the source exactly once, or the result is not valid Python."""


class Tree:
    """A copy of the project in which one guard at a time is removed."""

    def __init__(self, project: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(project, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        self._moments = count(1)

    @contextmanager
    def without(self, mutant: Mutant) -> Iterator[None]:
        """Remove the guard inside the context.

        Raises NotApplicable if the mutant's text is not in the source exactly once, or the result
        is not valid Python.
        """
        path = self.folder / mutant.file
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        mutated = before
        for old, new in mutant.edits:
            found = before.count(old)
            if found != 1:
                raise NotApplicable(f"{old!r} is {found} times in {mutant.file}, not once")
            mutated = mutated.replace(old, new)
        try:
            compile(mutated, mutant.file, "exec")
        except SyntaxError as error:
            raise NotApplicable(f"what it makes is no Python: {error}") from error
        self._write(path, mutated)
        try:
            yield
        finally:
            self._write(path, before)

    def _write(self, path: Path, text: str) -> None:
        """Write the file with a unique modification time.

        Python decides by this time in s and the file size whether bytecode is up to date.
        """
        at = path.stat().st_mtime + next(self._moments)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (at, at))

    def run(self, tests: Sequence[str]) -> TestRun:
        """Run these tests in this tree."""
        paths = os.pathsep.join(str(self.folder / part) for part in SOURCES)
        plain = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
        plain.pop("PYTHONDONTWRITEBYTECODE", None)
        # Wide, because pytest cuts its summary to the terminal's width. No plugin is loaded except
        # that of the test kit.
        settings = {"COLUMNS": "2000", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment = {**plain, **settings, "PYTHONPATH": paths}
        quiet = ["-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "--no-header"]
        quiet += ["-p", "roundsman_testing.plugin"]
        command = [sys.executable, "-m", "pytest", *quiet, *tests]
        try:
            ended = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return TestRun(None, {}, f"not over after {PATIENCE:.0f} s")
        lines = ended.stdout.splitlines()
        failed = dict(_named(line) for line in lines if line.startswith("FAILED "))
        output = [line for line in lines if line.strip()] + ended.stderr.splitlines()
        return TestRun(ended.returncode, failed, " / ".join(output[-2:]))


def _named(line: str) -> tuple[str, str]:
    """Return the test and its error from a line of pytest's summary."""
    node, _, error = line.removeprefix("FAILED ").partition(" - ")
    return node.strip(), error


def judge(tree: Tree, mutant: Mutant) -> JudgedMutant:
    """Remove the guard, run its tests, and return whether each of them failed."""
    began = time.monotonic()

    def judged(verdict: MutantVerdict, reason: str = "") -> JudgedMutant:
        return JudgedMutant(mutant, verdict, time.monotonic() - began, reason)

    try:
        with tree.without(mutant):
            run = tree.run(mutant.tests)
    except NotApplicable as problem:
        return judged(MutantVerdict.NO_LONGER_APPLIES, str(problem))
    for test in mutant.tests:
        failure = run.failure_of(test)
        if run.exit_code != TESTS_FAILED or failure is None:
            why = f"pytest ended with {run.exit_code}, {test} did not fail: {run.last_words}"
            return judged(MutantVerdict.SURVIVED, why)
        if BROKEN.match(failure):
            return judged(MutantVerdict.SURVIVED, f"{test} failed of another error: {failure}")
    return judged(MutantVerdict.KILLED)


Report = Callable[[str], None]


def check(project: Path, mutants: Sequence[Mutant], report: Report) -> list[JudgedMutant] | None:
    """Judge each mutant in order; return None if the tests do not pass unmutated."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [Tree(project, Path(folder) / str(number)) for number in range(WORKERS)]
        free: SimpleQueue[Tree] = SimpleQueue()
        for tree in trees:
            free.put(tree)
        with ThreadPoolExecutor(WORKERS) as workers:
            if not _pass_unmutated(trees, mutants, workers, report):
                return None

            def judge_one(mutant: Mutant) -> JudgedMutant:
                tree = free.get()
                try:
                    found = judge(tree, mutant)
                finally:
                    free.put(tree)
                report(f"{found.verdict}: {mutant.name} ({found.seconds:.1f} s){_reason_of(found)}")
                return found

            return list(workers.map(judge_one, mutants))


def _reason_of(found: JudgedMutant) -> str:
    return f": {found.reason}" if found.reason else ""


def _pass_unmutated(
    trees: Sequence[Tree], mutants: Sequence[Mutant], workers: ThreadPoolExecutor, report: Report
) -> bool:
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    report(f"{len(mutants)} guards, {len(tests)} tests, which must pass as they are")
    shares = [tests[number :: len(trees)] for number in range(len(trees))]
    runs = list(
        workers.map(lambda pair: pair[0].run(pair[1]), zip(trees, shares, strict=True))
        if len(tests) >= len(trees)
        else [trees[0].run(tests)]
    )
    for run in runs:
        if run.exit_code != 0:
            report(f"they do not: {', '.join(run.failed) or run.last_words}")
    return all(run.exit_code == 0 for run in runs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation_check", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="just this guard")
    parser.add_argument("--report", type=Path, metavar="FILE", help="how many of each, as JSON")
    options = parser.parse_args(arguments)
    asked, guards = options.only, read_guards()
    chosen = [mutant for mutant in guards if not asked or mutant.name in asked]
    strange = set(asked or ()) - {mutant.name for mutant in chosen}
    if strange:
        print(f"There is no guard {', '.join(sorted(strange))}. There are:")
        print("\n".join(f"  {mutant.name}: {mutant.why}" for mutant in guards))
        return 2
    began = time.monotonic()
    found = check(PROJECT, chosen, lambda line: print(line, flush=True))
    if found is None:
        return 1
    if options.report is not None:
        options.report.write_text(json.dumps(counts_of(found)))
    return summed_up(found, time.monotonic() - began)


def counts_of(found: Sequence[JudgedMutant]) -> dict[str, int]:
    """Return the number of mutants for each verdict."""
    return {
        verdict.lower(): sum(each.verdict is verdict for each in found) for verdict in MutantVerdict
    }


def summed_up(found: Sequence[JudgedMutant], seconds: float) -> int:
    """Print the number for each verdict and the mutants not killed, and return the exit code."""
    print()
    for verdict in MutantVerdict:
        print(f"{verdict:<18} {sum(each.verdict is verdict for each in found):>3}")
    print(f"{'seconds':<18} {seconds:>3.0f}")
    alive = [each for each in found if each.verdict is not MutantVerdict.KILLED]
    for each in alive:
        print(f"\n{each.mutant.name} ({each.mutant.why})\n  {each.verdict}{_reason_of(each)}")
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main())
