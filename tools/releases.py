"""Checks that each release in CHANGELOG.md names sources that `make verify` passed on.

A release is a heading that begins with its version (`## 0.2.0`). Its section has a line
`Verified: HASH`, with a hash from docs/verified.json. Unreleased changes are under
`## Unreleased`. Without that section, the sources must be those of the newest release.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

BEFORE_THE_RULE = {
    "0.1.0": "handed out under no heading of its own, before releases named what was verified"
}
"""The versions without a hash, and the reason. Do not add others."""

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## (\S+).*$", re.MULTILINE)
_VERIFIED = re.compile(r"^Verified: `?([0-9a-f]{64})`?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the changelog."""

    version: str
    verified: str | None
    """The hash in the section; None if it has none."""


def releases(changelog: str) -> list[Section]:
    """Return the sections of the changelog, newest first, including `Unreleased`."""
    headings = list(_HEADING.finditer(changelog))
    ends = [*(heading.start() for heading in headings[1:]), len(changelog)]
    found = []
    for heading, end in zip(headings, ends, strict=True):
        named = _VERIFIED.search(changelog, heading.end(), end)
        found.append(Section(heading[1], named[1] if named else None))
    return found


def problems(
    changelog: str, *, version: str, verified: Collection[str], sources: str
) -> Iterator[str]:
    """Yield a sentence for each problem in the changelog.

    `version` is the version of the package, `verified` contains the hashes that `make verify`
    passed on, and `sources` is the hash of the current sources.
    """
    sections = releases(changelog)
    found = [each for each in sections if each.version != UNRELEASED]
    for each in found:
        if each.verified is None and each.version not in BEFORE_THE_RULE:
            yield f"{each.version} names no verified sources: add a line `Verified: HASH`"
        elif each.verified is not None and each.verified not in verified:
            yield f"{each.version} names sources that make verify never passed on"
    newest = found[0] if found else None
    if version not in BEFORE_THE_RULE and (newest is None or newest.version != version):
        yield f"the package's version is {version}, and the newest release is another"
    if len(found) == len(sections) and newest is not None and newest.verified != sources:
        what_to_do = f"say under `## {UNRELEASED}` what is new"
        yield f"the sources are not those of {newest.version}: {what_to_do}"
