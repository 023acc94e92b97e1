"""Writes the list of a release's parts in CycloneDX 1.6, from the locked requirements.

A part is a library in the version that a lock pins. Those of the Lambda layer are required; those
that only an extra or `roundsman local` installs are optional. What only developers need is no part.
"""

import re
import tomllib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int"

LAYER = "layers/core/requirements.txt"
EXTRAS = "requirements/dev.txt"
"""The lock that has, beside what developers need, what each extra installs."""
LOCKS = (LAYER, EXTRAS, "requirements/emulator.txt", "requirements/lambda-runtime.txt")
"""The locks of what a release installs. The last two are of `roundsman local`."""

_ENTRY = re.compile(r"(?P<name>[a-z0-9-]+)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)")
_HASH = re.compile(r"^    --hash=sha256:([0-9a-f]{64})(?: \\)?$")
_VIA = re.compile(r"^    #(?: via\b)? *(?P<who>.*)$")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Pinned:
    """One version of a library in a lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """The SHA-256 of each file that the lock accepts, in hex digits."""
    needed_by: frozenset[str]
    """The libraries of the lock that need it."""
    asked: bool
    """Whether the input of the lock asks for it by name."""

    @property
    def purl(self) -> str:
        """The package URL, which names library and version."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str, file: str) -> list[Pinned]:
    """Return what a lock pins, in its order. `file` is its name for errors.

    Raises ValueError for a requirement without exact version or without a hash.
    """
    found: list[Pinned] = []
    entry, hashes, by = "", list[str](), list[str]()
    for line in [*text.splitlines(), "end"]:
        if hashed := _HASH.match(line):
            hashes.append(hashed[1])
        elif via := _VIA.match(line):
            by.append(via["who"])
        elif line.strip() and not line.lstrip().startswith("#"):
            if entry:
                found.append(_pinned(entry, hashes, by, file))
            entry, hashes, by = line, [], []
    return found


def _pinned(entry: str, hashes: Iterable[str], by: Sequence[str], file: str) -> Pinned:
    match = _ENTRY.match(entry)
    accepted = tuple(sorted(set(hashes)))
    if match is None or not accepted:
        raise ValueError(f"{file}: {entry.split(maxsplit=1)[0]} needs an exact version and a hash")
    asked = any(who.startswith("-r ") or who.endswith("(pyproject.toml)") for who in by)
    needed_by = frozenset(who for who in by if _NAME.fullmatch(who))
    return Pinned(match["name"], match["version"], accepted, needed_by, asked)


def needed(locked: Sequence[Pinned], asked: Iterable[str] | None = None) -> list[Pinned]:
    """Return what these libraries need, and they themselves, in the order of the lock.

    `asked` are the names of those that are asked for, instead of those that the input of the lock
    asks for; None for the latter.
    """
    if asked is not None:
        names = set(asked)
        locked = [replace(one, asked=one.name in names) for one in locked]
    wanted = {one.name for one in locked if one.asked}
    before = 0
    while before != len(wanted):
        before = len(wanted)
        wanted |= {one.name for one in locked if one.needed_by & wanted}
    return [one for one in locked if one.name in wanted]


def name_of(requirement: str) -> str:
    """Return the normalised name of the package that a requirement asks for.

    Raises ValueError if it names none.
    """
    found = _NAME.match(requirement)
    if found is None:
        raise ValueError(f"{requirement!r} names no package")
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def asked_by_users(project: Mapping[str, object]) -> set[str]:
    """Return the libraries that the package and its extras ask for.

    `project` is the table `[project]` of pyproject.toml.
    """
    extras = project.get("optional-dependencies")
    lists = [project.get("dependencies"), *(extras.values() if isinstance(extras, dict) else ())]
    names = {name_of(str(line)) for one in lists if isinstance(one, list) for line in one}
    return names - {project.get("name")}


def parts_list(
    pyproject: str, locks: Mapping[str, str], files: Mapping[str, str], made_at: int
) -> dict[str, Json]:
    """Return the list of the parts of a release as a CycloneDX document.

    `pyproject` is the text of pyproject.toml, `locks` has the text of each of `LOCKS` by its file,
    `files` has the SHA-256 of each distribution by the name of its file, and `made_at` is the time
    of the commit in epoch seconds. Equal arguments give equal documents.
    """
    project = tomllib.loads(pyproject)["project"]
    found = {file: _parts(file, locks[file], project) for file in LOCKS}
    name, version = project["name"], project["version"]
    root = f"pkg:pypi/{name}@{version}"
    identity = " ".join([root, *(f"{file}={of}" for file, of in sorted(files.items()))])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": name,
                "version": version,
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": root,
                "externalReferences": [
                    {"type": "distribution", "url": file, "hashes": [_hash(of)]}
                    for file, of in sorted(files.items())
                ],
            },
        },
        "components": list(_components(found)),
        "dependencies": list(_dependencies(root, found)),
    }


def _parts(file: str, text: str, project: Mapping[str, object]) -> list[Pinned]:
    locked = read_lock(text, file)
    return needed(locked, asked_by_users(project) if file == EXTRAS else None)


def _components(found: Mapping[str, Sequence[Pinned]]) -> Iterator[Json]:
    """Yield each version once, with the locks that pin it."""
    everywhere = {one.purl: one for parts in found.values() for one in parts}
    for purl, one in sorted(everywhere.items()):
        locks = [file for file, parts in found.items() if any(each.purl == purl for each in parts)]
        accepted = {
            of
            for parts in found.values()
            for each in parts
            if each.purl == purl
            for of in each.hashes
        }
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": one.name,
            "version": one.version,
            "scope": "required" if LAYER in locks else "optional",
            "purl": purl,
            # Not the hashes of the part: those would be of one file, and the lock accepts several.
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": purl,
                    "comment": "each file that the lock accepts",
                    "hashes": [_hash(of) for of in sorted(accepted)],
                }
            ],
            "properties": [{"name": "roundsman:lock", "value": file} for file in locks],
        }


def _dependencies(root: str, found: Mapping[str, Sequence[Pinned]]) -> Iterator[Json]:
    """Yield what the release and each part need, as the locks note it."""
    needs: dict[str, set[str]] = {root: set()}
    for parts in found.values():
        for one in parts:
            needs.setdefault(one.purl, set())
            if one.asked:
                needs[root].add(one.purl)
            for other in parts:
                if other.name in one.needed_by:
                    needs.setdefault(other.purl, set()).add(one.purl)
    for purl, others in sorted(needs.items()):
        yield {"ref": purl, "dependsOn": [*sorted(others)]}


def _hash(sha256: str) -> Json:
    return {"alg": "SHA-256", "content": sha256}
