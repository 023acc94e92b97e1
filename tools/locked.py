"""Prints the part of the lock that a command needs, for pip: `--requirement`.

    python -m tools.locked --extra cli --extra local --group demo

Extras and groups are those of pyproject.toml; the lock is that of all of them. It names behind each
package the packages that need it, so what a package needs is found there. Needs nothing installed.
"""

import argparse
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.release_parts import name_of, needed, read_lock

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "dev.txt"
PROJECT = "roundsman"

_OWN_EXTRAS = re.compile(rf"{PROJECT}\[([a-z,]+)\]")
_ENTRY = re.compile(r"^([a-z0-9-]+)(?:\[[^]]*\])?==.*\n(?:[ \t].*\n)*", re.MULTILINE)


def asked(
    settings: Mapping[str, Any], extras: Iterable[str], groups: Iterable[str]
) -> Iterator[str]:
    """Yield the names that the project, these extras and these groups ask for.

    Raises KeyError for an extra or a group that there is not.
    """
    yield from map(name_of, settings["project"]["dependencies"])
    for extra in extras:
        for requirement in settings["project"]["optional-dependencies"][extra]:
            if own := _OWN_EXTRAS.match(requirement):
                yield from asked(settings, own[1].split(","), ())
            else:
                yield name_of(requirement)
    for group in groups:
        for entry in settings["dependency-groups"][group]:
            if isinstance(entry, dict):
                yield from asked(settings, (), [entry["include-group"]])
            else:
                yield name_of(entry)


def part(lock: str, names: Iterable[str]) -> str:
    """Return the entries of these packages and of all that they need, in the lock's order.

    Raises KeyError for a package that is not in the lock.
    """
    locked = read_lock(lock, LOCK.name)
    wanted = {*names}
    if missing := wanted - {one.name for one in locked}:
        raise KeyError(f"{', '.join(sorted(missing))} in no entry of {LOCK.name}: run make lock")
    found = {one.name for one in needed(locked, wanted)}
    return "".join(entry[0] for entry in _ENTRY.finditer(lock) if entry[1] in found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the part of the lock."""
    parser = argparse.ArgumentParser(prog="python -m tools.locked", description=__doc__)
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--group", action="append", default=[])
    given = parser.parse_args(arguments)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = asked(settings, given.extra, given.group)
    print(part(LOCK.read_text(encoding="utf-8"), names), end="")


if __name__ == "__main__":
    main()
