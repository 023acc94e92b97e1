"""Checks that the unit tests of the engine notice every change of it that matters.

    python -m tools.mutants.engine [--only MODULE ...] [--properties] [--report FILE]

Every mutant of `roundsman.engine` (`tools.mutants.generated`) must make a test in tests/unit/engine
fail, or be listed in survivors.toml with the reason why it does not. The modules in NOT_CHECKED are
left out. The exit code is 1 if a mutant that is not listed survives, or if a listed one was killed
or does not exist any more.

The tests are collected once. For each mutant, this process is forked, and the tests that execute
the changed lines run in the fork, the most specific first, until one fails. The mutant exists only
in the memory of the fork. The tests that take seconds, those of hypothesis and those in the files
named *_properties.py, run only for an entry that names one of them as `held_by`; with --properties,
all of them run for each survivor that is not listed. An endless loop counts as killed: the limit of
processor time is a multiple of what the slowest test needs.
"""

import argparse
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import TYPE_CHECKING, TextIO, cast

import hypothesis
import pytest

import roundsman.engine
from tools.mutants.generated import Generated, MutantId, mutants_of
from tools.mutants.survivors import Survivor, read_survivors, stanza

if TYPE_CHECKING:
    from _typeshed import TraceFunction

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = roundsman.engine.__name__
TESTS = "tests/unit/engine"
NOT_CHECKED = (
    "fan_out",
    "history",
    "new_task",
    "on_failure",
    "requests",
    "steps",
    "task_deadline",
    "transitions",
)
"""The modules of the engine whose survivors were not judged yet; --only checks one all the same."""

WORKERS = 2
QUICK_LIMIT = 5
"""The limit of processor time for one test, in s. The slowest takes half a second."""
SLOW_LIMIT = 120
"""The limit of processor time for one test that explores, in s. The slowest takes ten."""
MEMORY_LIMIT = 4 * 1024**3
"""The limit of the address space of a fork, in bytes. An endless loop may collect as much."""
KILLED = 3
BROKEN = 4
"""Exit codes of a fork. A fork ends with 0 if all its tests have passed."""

Lines = Mapping[str, frozenset[int]]
"""Executed lines by file name."""


class CheckFailed(Exception):
    """Raised if the mutants cannot be checked; the message is a sentence with the reason."""


class Fork:
    """A fork of this process that calls a function with a file, which can be read afterwards."""

    def __init__(self, run: Callable[[TextIO], int]) -> None:
        self._file = TemporaryFile("w+")  # noqa: SIM115 - the parent closes it when it has read it
        self.pid = os.fork()
        if self.pid == 0:
            code = BROKEN
            try:
                nothing = os.open(os.devnull, os.O_RDWR)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                code = run(self._file)
            except BaseException as problem:  # noqa: BLE001 - the parent reports it
                self._file.write(f"{type(problem).__name__}: {problem}\n")
            finally:
                self._file.flush()
                os._exit(code)

    def written(self) -> list[str]:
        """Return the lines that the function has written. Call it once, after the fork's end."""
        with self._file as file:
            file.seek(0)
            return file.read().splitlines()


class Tests:
    """The collected tests. Each call runs them in a fork, so that none sees what another left."""

    def __init__(self, quick_limit: int = QUICK_LIMIT) -> None:
        self._quick_limit = quick_limit
        self._failed = False
        self._killers: dict[str, dict[str, None]] = {}
        """The tests that have killed mutants of each function, the last one at the end."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notice a failure; called by pytest."""
        self._failed = self._failed or report.failed

    def _passes(self, item: pytest.Item) -> bool:
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self._failed

    def coverage(self, items: Sequence[pytest.Item], files: Sequence[str]) -> dict[str, Lines]:
        """Return the lines of these files that each test executes, by its node ID.

        Raises CheckFailed if a test fails.
        """

        def run(output: TextIO) -> int:
            for item in items:
                with traced(files) as executed:
                    passed = self._passes(item)
                if not passed:
                    output.write(f"{item.nodeid} fails without a mutant\n")
                    return KILLED
                lines = {file: sorted(found) for file, found in executed.items() if found}
                output.write(json.dumps([item.nodeid, lines]) + "\n")
            return 0

        fork = Fork(run)
        _, status = os.waitpid(fork.pid, 0)
        written = fork.written()
        if status != 0:
            raise CheckFailed(written[-1] if written else f"the tests ended with {status}")
        rows = [json.loads(line) for line in written]
        return {
            node: {file: frozenset(lines) for file, lines in executed.items()}
            for node, executed in rows
        }

    def judge(
        self, work: Sequence[tuple[Generated, Sequence[pytest.Item]]]
    ) -> Iterator[tuple[Generated, str | None]]:
        """Yield each mutant with the test that kills it; None if it survives the given tests.

        WORKERS mutants run at a time. Raises CheckFailed if a fork ends in another way.
        """
        rest = iter(work)
        running: dict[int, tuple[Generated, Fork]] = {}
        while True:
            while len(running) < WORKERS and (following := next(rest, None)) is not None:
                fork = self._start(*following)
                running[fork.pid] = following[0], fork
            if not running:
                return
            pid, status = os.wait()
            mutant, fork = running.pop(pid)
            code, written = os.waitstatus_to_exitcode(status), fork.written()
            if code == 0:
                yield mutant, None
                continue
            if code not in (KILLED, -signal.SIGXCPU):
                raise CheckFailed(f"{mutant.id}: its tests ended with {code}: {written[-3:]}")
            killers = self._killers.setdefault(mutant.id.function, {})
            killers.pop(written[-1], None)
            killers[written[-1]] = None
            yield mutant, written[-1]

    def _start(self, mutant: Generated, items: Sequence[pytest.Item]) -> Fork:
        """Run the tests on the mutant until one fails; those that killed its like come first."""
        recent = [*self._killers.get(mutant.id.function, {})][::-1][:20]
        ranks = {node: rank for rank, node in enumerate(recent)}
        ordered = sorted(items, key=lambda item: ranks.get(item.nodeid, len(ranks)))

        def run(output: TextIO) -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
            mutant.activate()
            for item in ordered:
                output.write(f"{item.nodeid}\n")
                output.flush()  # for a fork that ends by its limit
                limit = SLOW_LIMIT if is_slow(item) else self._quick_limit
                limit += int(time.process_time()) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                if not self._passes(item):
                    return KILLED
            return 0

        return Fork(run)


@contextmanager
def traced(files: Sequence[str]) -> Iterator[dict[str, set[int]]]:
    """Record which lines of the files are executed inside the context."""
    executed: dict[str, set[int]] = {file: set() for file in files}

    def called(frame: FrameType, _event: str, _arg: object) -> object:
        lines = executed.get(frame.f_code.co_filename)
        if lines is None:
            return None

        def reached(frame: FrameType, _event: str, _arg: object) -> object:
            lines.add(frame.f_lineno)
            return reached

        reached(frame, _event, _arg)
        return reached

    sys.settrace(cast("TraceFunction", called))
    try:
        yield executed
    finally:
        sys.settrace(None)


def is_slow(item: pytest.Item) -> bool:
    """Whether a test explores many cases, which takes seconds."""
    explores = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return bool(explores) or item.path.name.endswith("_properties.py")


def covering(
    mutant: Generated, items: Sequence[pytest.Item], coverage: Mapping[str, Lines]
) -> list[pytest.Item]:
    """Return the tests that execute the mutant's lines, those that execute the fewest lines first.

    A table's own lines are executed at the import only, so for a table these are the tests that
    execute any line of its module.
    """
    file, lines = str(mutant.module.__file__), frozenset(mutant.lines)

    def executes(item: pytest.Item) -> bool:
        executed = coverage[item.nodeid].get(file, frozenset())
        return bool(executed) if mutant.is_table else not lines.isdisjoint(executed)

    def size(item: pytest.Item) -> int:
        return sum(map(len, coverage[item.nodeid].values()))

    return sorted((item for item in items if executes(item)), key=size)


def problems_of(
    killers: Mapping[MutantId, str | None],
    held: Mapping[MutantId, str | None],
    listed: Mapping[MutantId, Survivor],
    modules: Sequence[str],
) -> list[str]:
    """Return what is wrong, each as a text for people.

    `killers` has the test that killed each mutant, None for a survivor. `held` has the same for the
    survivors whose entries name a slow test. Entries of other modules than these are not judged.
    """
    found = [
        f"SURVIVED, and is not listed:\n{stanza(mutant)}"
        for mutant, killer in killers.items()
        if killer is None and mutant not in listed
    ]
    for mutant, entry in listed.items():
        if mutant.function.partition(".")[0] not in modules:
            continue
        if mutant not in killers:
            found.append(f"LISTED, but there is no such mutant any more: {mutant}")
        elif killers[mutant] is not None:
            found.append(f"LISTED, but {killers[mutant]} kills it: {mutant}")
        elif entry.held_by and held.get(mutant) is None:
            found.append(f"LISTED as held by {entry.held_by}, which passes: {mutant}")
    return found


@dataclass(slots=True)
class Check:
    """A plugin that checks the mutants of some modules as the loop of a pytest session."""

    package: str
    modules: Sequence[str]
    """The names of the modules within the package."""
    listed: Mapping[MutantId, Survivor]
    properties: bool
    """Whether the slow tests run for each survivor that is not listed."""
    tests: Tests
    problems: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Let hypothesis end at the first failure: nobody reads its example."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        usual = hypothesis.settings()
        hypothesis.settings.register_profile("mutants", usual, phases=phases)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Check the mutants instead of running the tests."""
        try:
            self._check(session)
        except CheckFailed as problem:
            print(problem)
        return True

    def _check(self, session: pytest.Session) -> None:
        if session.testsfailed:
            raise CheckFailed("the tests cannot be collected")
        modules = [importlib.import_module(f"{self.package}.{name}") for name in self.modules]
        mutants = [mutant for module in modules for mutant in mutants_of(module)]
        named = {item.nodeid: item for item in session.items}
        exploring = {entry.held_by for entry in self.listed.values()}
        slow = [item for item in session.items if is_slow(item) or item.nodeid in exploring]
        quick = [item for item in session.items if item not in slow]
        coverage = self.tests.coverage(quick, [str(module.__file__) for module in modules])
        print(f"{len(mutants)} mutants; {len(quick)} quick tests, {len(slow)} slow ones")
        killers = self._judge([(each, covering(each, quick, coverage)) for each in mutants])
        alive = [mutant for mutant in mutants if killers[mutant.id] is None]
        held = self._judge(
            [
                (mutant, [named[entry.held_by]])
                for mutant in alive
                if (entry := self.listed.get(mutant.id)) and entry.held_by in named
            ]
        )
        if self.properties:
            unlisted = [(mutant, slow) for mutant in alive if mutant.id not in self.listed]
            for mutant, killer in self.tests.judge(unlisted):
                print(f"{killer or 'nothing'} kills {mutant.id}", flush=True)
        self.problems = problems_of(killers, held, self.listed, self.modules)
        self.counts = {
            "mutants": len(mutants),
            "killed": len(mutants) - len(alive),
            "survivors with a reason": sum(mutant.id in self.listed for mutant in alive),
            "failed": len(self.problems),
        }

    def run(self, tests: Sequence[str]) -> bool:
        """Collect the tests and check the mutants. Returns False if that is not possible."""
        quiet = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
        quiet += ["-o", "faulthandler_timeout=0"]
        return pytest.main([*quiet, *tests], plugins=[self, self.tests]) == 0 and bool(self.counts)

    def _judge(
        self, work: Sequence[tuple[Generated, Sequence[pytest.Item]]]
    ) -> dict[MutantId, str | None]:
        """Return the test that kills each mutant, in the order of the work."""
        found: dict[MutantId, str | None] = {}
        for mutant, killer in self.tests.judge(work):
            found[mutant.id] = killer
            if killer is None and mutant.id not in self.listed:
                print(f"survived: {mutant.id}", flush=True)
            if len(found) % 100 == 0:
                print(f"{len(found)} of {len(work)}", flush=True)
        return {mutant.id: found[mutant.id] for mutant, _ in work}


def all_modules() -> list[str]:
    """Return the names of the engine's modules."""
    return sorted(module.name for module in pkgutil.iter_modules(roundsman.engine.__path__))


def checked_modules() -> list[str]:
    """Return the names of the modules that are checked unless others are named."""
    return [name for name in all_modules() if name not in NOT_CHECKED]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants.engine", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", action="append", metavar="MODULE", choices=all_modules())
    parser.add_argument("--properties", action="store_true")
    parser.add_argument("--report", type=Path, metavar="FILE", help="the numbers, as JSON")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    listed = read_survivors()
    check = Check(PACKAGE, options.only or checked_modules(), listed, options.properties, Tests())
    slow = sorted({entry.held_by for entry in listed.values() if entry.held_by})
    os.chdir(PROJECT)
    if not check.run([TESTS, *slow]):
        return 1
    print("\n\n".join(check.problems))
    print(", ".join(f"{count} {name}" for name, count in check.counts.items()))
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(each.ru_utime + each.ru_stime for each in usage)
    print(f"{time.monotonic() - began:.0f} s, {processor:.0f} s of processor")
    if options.report is not None:
        options.report.write_text(json.dumps(check.counts))
    return 1 if check.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
