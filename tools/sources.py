"""Computes one hash of the engine's sources, and the number of commits that changed them since.

The sources are the files that are deployed: functions, layers, stacks and template.

The hash is the SHA-256 of a list that contains, for each file in the order of the paths, the ID of
its git blob and its path. So the hash is the same in every checkout of every commit with the same
files, and in a copy without git.
"""

import hashlib
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("functions", "layers", "stacks", "template.yaml")
MADE = frozenset({"__pycache__", ".DS_Store"})
"""Names of generated files and folders; used only if git cannot list the files."""


def hash_here(project: Path) -> str:
    """Return the hash of the current sources in this folder, committed or not."""
    files = _tracked(project) or _found(project)
    return _hash((path, _id((project / path).read_bytes())) for path in files)


def hash_of(project: Path, commit: str) -> str:
    """Return the hash of the sources in a commit. Raises NoHistory if git cannot list them."""
    listed = _git(project, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *SOURCES)
    entries = [entry.partition("\t") for entry in listed.split("\0") if entry]
    return _hash((path, about.split()[2]) for about, _, path in entries)


class NoHistory(Exception):
    """git is not installed, or the folder is not a git checkout; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Since:
    """The changes of the sources since they had a given hash."""

    commits: int
    """The number of commits that changed the sources. If `found` is False, all known commits."""
    found: bool
    """Whether a commit with this hash exists."""
    shallow: bool
    """Whether this is a shallow clone, which does not contain all commits."""
    edited: bool
    """Whether the current sources differ from those of the last commit."""


def since(project: Path, verified: str | None) -> Since:
    """Return the changes of the sources since they had this hash; None counts as an unknown hash.

    Raises NoHistory if the folder is not a git checkout.
    """
    if not _is_top(project):
        raise NoHistory("this is no git checkout")
    touching = _git(project, "rev-list", "HEAD", "--", *SOURCES).split()
    edited = hash_here(project) != hash_of(project, "HEAD")
    shallow = _git(project, "rev-parse", "--is-shallow-repository").strip() == "true"
    for commit in touching if verified else ():
        if hash_of(project, commit) == verified:
            count = _git(project, "rev-list", "--count", f"{commit}..HEAD", "--", *SOURCES)
            return Since(int(count), found=True, shallow=shallow, edited=edited)
    return Since(len(touching), found=False, shallow=shallow, edited=edited)


def _hash(files: Iterable[tuple[str, str]]) -> str:
    listed = "".join(f"{name} {path}\n" for path, name in sorted(files))
    return hashlib.sha256(listed.encode()).hexdigest()


def _id(contents: bytes) -> str:
    """Return the ID of the git blob with these contents."""
    head = b"blob %d\0" % len(contents)
    return hashlib.sha1(head + contents, usedforsecurity=False).hexdigest()


def _tracked(project: Path) -> list[str]:
    """Return the existing files that git tracks; none if this is not a git checkout."""
    try:
        listed = _git(project, "ls-files", "-z", "--", *SOURCES) if _is_top(project) else ""
    except NoHistory:
        return []
    return [path for path in listed.split("\0") if path and (project / path).is_file()]


def _found(project: Path) -> list[str]:
    """Return all files except generated ones."""
    found = [path for top in SOURCES for path in (project / top, *(project / top).rglob("*"))]
    return [
        path.relative_to(project).as_posix()
        for path in found
        if path.is_file() and not MADE & set(path.parts) and path.suffix != ".pyc"
    ]


def _is_top(project: Path) -> bool:
    """Whether the folder is the root of a git checkout, and not a copy inside another checkout."""
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
