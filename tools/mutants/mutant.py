"""One guard taken out of the source, and the test that must notice."""

from dataclasses import dataclass


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
