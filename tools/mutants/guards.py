"""Reads guards.toml: pinned texts of the source, which `tools.mutation_check` replaces one by one.

The mutants of the engine are generated: see `tools.mutants.engine`. Its guards are pinned only for
the modules that are not checked there yet. A row of the file is headed by the source file and the
guard's name:

    ["layers/core/roundsman/model/redelivery.py".what-was-throttled-once-comes-again-soon]
    old = "if receives < 2:"
    new = "if receives < 1:"
    tests = ["tests/unit/aws/sqs/test_throttled.py::test_a_message_that_is_throttled_once_..."]
    why = "a claim whose request was not sent is overdue before its message comes again"
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

GUARDS = Path(__file__).parent / "guards.toml"


@dataclass(frozen=True, slots=True)
class Mutant:
    """The exact text `old`, once in `file`, becomes `new`; then each of `tests` must fail.

    `also` are more such pairs, where a guard is in two places. A test that runs with several
    parameters has failed if it fails with one of them. `why` says what would happen in
    production, in a few words.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    also: tuple[tuple[str, str], ...] = ()

    @property
    def edits(self) -> tuple[tuple[str, str], ...]:
        """Each text that is replaced, and what by."""
        return ((self.old, self.new), *self.also)


def read_guards(file: Path = GUARDS) -> tuple[Mutant, ...]:
    """Return the mutants of the file. Raises TypeError if a row lacks a key or has another."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    found = []
    for source, guards in rows.items():
        for name, row in guards.items():
            row["tests"] = tuple(row.get("tests", ()))
            row["also"] = tuple((old, new) for old, new in row.get("also", ()))
            found.append(Mutant(name, source, **row))
    return tuple(found)
