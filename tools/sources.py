"""The engine's sources as one hash, and which commits have changed them since a hash.

What the proof is about is what is deployed: the functions, the layers and the template. The test
kit is no part of it, since no layer ships it: like the tests, it is the judge, not the judged.

The hash is that of a list: for each file, in the order of their paths, the id that git gives to its
contents, and its path. So it is the same in every checkout, of every commit with the same files,
and in a copy that git knows nothing of.
"""

import hashlib
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("functions", "layers", "template.yaml")
LEFT_OUT = ("layers/core/roundsman/testing/",)
MADE = frozenset({"__pycache__", ".DS_Store"})
"""What a machine leaves in a folder; only told apart by name where git cannot say."""


def hash_here(project: Path) -> str:
    """The hash of the sources as they are in this folder now, committed or not."""
    files = _tracked(project) or _found(project)
    return _hash((path, _id((project / path).read_bytes())) for path in files)


def hash_of(project: Path, commit: str) -> str:
    """The hash of the sources in a commit. Raises NoHistory where git cannot say."""
    listed = _git(project, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *SOURCES)
    entries = [entry.partition("\t") for entry in listed.split("\0") if entry]
    return _hash((path, about.split()[2]) for about, _, path in entries)


class NoHistory(Exception):
    """There is no git, or this is no checkout of it; the reason is in the message."""


@dataclass(frozen=True, slots=True)
class Since:
    """How many commits have changed the sources since those of a hash.

    `found` is whether any commit has just those sources; else all commits are counted that there
    are, which in a `shallow` clone are not all. `edited` says that the sources here are not those
    of the last commit.
    """

    commits: int
    found: bool
    shallow: bool
    edited: bool


def since(project: Path, verified: str | None) -> Since:
    """What has happened to the sources since they had this hash. Raises NoHistory."""
    if not _is_top(project):
        raise NoHistory("this is no git checkout")
    touching = _git(project, "rev-list", "HEAD", "--", *_PATHS).split()
    edited = hash_here(project) != hash_of(project, "HEAD")
    shallow = _git(project, "rev-parse", "--is-shallow-repository").strip() == "true"
    for commit in touching if verified else ():
        if hash_of(project, commit) == verified:
            count = _git(project, "rev-list", "--count", f"{commit}..HEAD", "--", *_PATHS)
            return Since(int(count), found=True, shallow=shallow, edited=edited)
    return Since(len(touching), found=False, shallow=shallow, edited=edited)


_PATHS = (*SOURCES, *(f":(exclude){path}" for path in LEFT_OUT))


def _hash(files: Iterable[tuple[str, str]]) -> str:
    lines = sorted((path, name) for path, name in files if not path.startswith(LEFT_OUT))
    listed = "".join(f"{name} {path}\n" for path, name in lines)
    return hashlib.sha256(listed.encode()).hexdigest()


def _id(contents: bytes) -> str:
    """What git calls these contents."""
    head = b"blob %d\0" % len(contents)
    return hashlib.sha1(head + contents, usedforsecurity=False).hexdigest()


def _tracked(project: Path) -> list[str]:
    """The files that git tracks here and that are there; none where it does not know."""
    try:
        listed = _git(project, "ls-files", "-z", "--", *SOURCES) if _is_top(project) else ""
    except NoHistory:
        return []
    return [path for path in listed.split("\0") if path and (project / path).is_file()]


def _found(project: Path) -> list[str]:
    """All files but those that a machine has made."""
    found = [path for top in SOURCES for path in (project / top, *(project / top).rglob("*"))]
    return [
        path.relative_to(project).as_posix()
        for path in found
        if path.is_file() and not MADE & set(path.parts) and path.suffix != ".pyc"
    ]


def _is_top(project: Path) -> bool:
    """Whether the folder is a checkout by itself, and no copy inside of another one."""
    try:
        return Path(_git(project, "rev-parse", "--show-toplevel").strip()) == project.resolve()
    except NoHistory:
        return False


def _git(project: Path, *arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", *arguments], cwd=project, capture_output=True, check=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        raise NoHistory(f"git cannot say: {problem}") from problem
