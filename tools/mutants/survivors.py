"""Reads survivors.toml: the mutants of the engine that no quick test kills, each with a reason."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.generated import MutantId

SURVIVORS = Path(__file__).parent / "survivors.toml"
REASONS = ("equivalent: ", "wording: ", "held by exploration: ")
"""How a reason begins. Equivalent: no input shows a difference. Wording: only the text for people
differs. Held by exploration: a slow test fails, which the entry names as `held_by`."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """An entry of the file."""

    id: MutantId
    reason: str
    """One sentence."""
    held_by: str
    """The node ID of the slow test that fails with the mutant; empty if there is none."""


class UnusableEntry(ValueError):
    """Raised for an entry that is incomplete or exists twice; the message is a sentence."""


def read_survivors(file: Path = SURVIVORS) -> dict[MutantId, Survivor]:
    """Return all entries of the file. Raises UnusableEntry."""
    found: dict[MutantId, Survivor] = {}
    for row in tomllib.loads(file.read_text(encoding="utf-8")).get("survivor", []):
        try:
            made = MutantId(
                row.pop("function"),
                row.pop("operator"),
                row.pop("before"),
                row.pop("after"),
                row.pop("occurrence", 1),
            )
            entry = Survivor(made, row.pop("reason"), row.pop("held_by", ""))
        except KeyError as missing:
            raise UnusableEntry(f"an entry has no {missing}: {row}") from None
        if row:
            raise UnusableEntry(f"{made}: unknown keys {', '.join(row)}")
        if made in found:
            raise UnusableEntry(f"{made}: listed twice")
        beginning = next((each for each in REASONS if entry.reason.startswith(each)), None)
        if beginning is None or len(entry.reason.removeprefix(beginning).split()) < 3:
            raise UnusableEntry(
                f"{made}: the reason is a sentence that begins with one of {REASONS}"
            )
        if (beginning == REASONS[2]) is not bool(entry.held_by):
            raise UnusableEntry(f"{made}: held_by is for what is held by exploration")
        found[made] = entry
    return found


def stanza(mutant: MutantId) -> str:
    """Return the entry for a mutant, with the reason left empty."""
    fields = {
        "function": mutant.function,
        "operator": mutant.operator,
        "before": mutant.before,
        "after": mutant.after,
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in fields.items()]
    lines += [f"occurrence = {mutant.occurrence}"] if mutant.occurrence > 1 else []
    return "\n".join(["[[survivor]]", *lines, 'reason = ""'])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
