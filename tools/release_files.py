"""Builds the files of a release from a commit.

    python -m tools.release_files [--commit HEAD] [--folder dist/roundsman-VERSION]

The files are the source distribution, the wheel that is built from it, the list of the parts in
CycloneDX (`tools.release_parts`), and the SHA-256 of each in `SHA256SUMS`. Uncommitted changes are
not in them. All is built twice, from two copies of the commit in different folders, and nothing is
written if a byte differs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tools.release_parts import LOCKS, parts_list
from tools.releases import UNRELEASED, problems, releases
from tools.sources import hash_here
from tools.verified import verified

PROJECT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"

Build: TypeAlias = Callable[[Path, int], Mapping[str, bytes]]
"""Builds the distributions from a folder of sources. The number is SOURCE_DATE_EPOCH."""


class NoRelease(Exception):
    """No file of a release was written. The message has the reason."""


def distributions(sources: Path, made_at: int) -> dict[str, bytes]:
    """Build the source distribution, and the wheel from what is in it. Return both by file name."""
    with tempfile.TemporaryDirectory() as folder:
        out, unpacked = Path(folder, "out"), Path(folder, "unpacked")
        _hatchling("sdist", sources, out, made_at)
        [archive] = out.glob("*.tar.gz")
        _unpack(archive, unpacked)
        [inner] = unpacked.iterdir()
        _hatchling("wheel", inner, out, made_at)
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def _hatchling(target: str, sources: Path, out: Path, made_at: int) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    done = subprocess.run(
        [*command, "--directory", str(out)],
        cwd=sources,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(made_at)},
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        raise NoRelease(f"the {target} cannot be built: {lines[-1]}")


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")


def release(project: Path, commit: str, build: Build = distributions) -> dict[str, bytes]:
    """Return the files of the release of a commit, by name.

    Raises NoRelease if there is no such commit, if CHANGELOG.md is not that of a release, if the
    distributions cannot be built, or if two builds differ.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies = [_copied(project, commit, Path(folder, name)) for name in ("one", "the-other")]
        made_at = int(_git(project, "log", "-1", "--format=%ct", commit, "--").strip())
        pyproject = (copies[0] / "pyproject.toml").read_text(encoding="utf-8")
        version = str(tomllib.loads(pyproject)["project"]["version"])
        _check_changelog(copies[0], version)
        files, again = ({**build(copy, made_at)} for copy in copies)
        if differ := sorted(name for name in files | again if files.get(name) != again.get(name)):
            raise NoRelease(f"two builds of {commit} differ in {', '.join(differ)}")
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        locks = {file: (copies[0] / file).read_text(encoding="utf-8") for file in LOCKS}
        parts = json.dumps(parts_list(pyproject, locks, sums, made_at), indent=2) + "\n"
    files[f"roundsman-{version}.cdx.json"] = parts.encode()
    lines = [
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(files.items())
    ]
    return {**files, SUMS: "".join(lines).encode()}


def _copied(project: Path, commit: str, folder: Path) -> Path:
    """Return the folder, with the files of the commit in it."""
    archive = folder.with_suffix(".tar")
    _git(project, "archive", "--format=tar", f"--output={archive}", commit)
    _unpack(archive, folder)
    return folder


def _git(project: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, check=False, text=True)
    if done.returncode:
        raise NoRelease(f"git cannot read the commit: {done.stderr.strip()}")
    return done.stdout


def _check_changelog(sources: Path, version: str) -> None:
    changelog = (sources / "CHANGELOG.md").read_text(encoding="utf-8")
    of_sources = hash_here(sources)
    found = [*problems(changelog, version=version, verified=verified(sources), sources=of_sources)]
    if found:
        raise NoRelease("; ".join(found))


def _is_trial(project: Path, commit: str) -> bool:
    """Whether the changelog of the commit has changes that no release has."""
    changelog = _git(project, "show", f"{commit}:CHANGELOG.md")
    return any(section.version == UNRELEASED for section in releases(changelog))


def main(arguments: Sequence[str] | None = None, project: Path = PROJECT) -> int:
    """Write the files of a release, print their hashes, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.release_files", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--commit", default="HEAD", help="the commit to build (default: HEAD)")
    parser.add_argument("--folder", type=Path, help="where to write the files")
    asked = parser.parse_args(arguments)
    try:
        commit = _git(project, "rev-parse", "--verify", f"{asked.commit}^{{commit}}").strip()
        files = release(project, commit)
        trial = _is_trial(project, commit)
    except NoRelease as why:
        print(f"Nothing is written: {why}", file=sys.stderr)
        return 1
    [parts] = [name for name in files if name.endswith(".cdx.json")]
    folder = asked.folder or project / "dist" / parts.removesuffix(".cdx.json")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    print(files[SUMS].decode(), end="")
    print(f"Built twice from {commit}, with equal bytes, into {folder}")
    if trial:
        print(f"This is a trial, and no release: CHANGELOG.md has changes under {UNRELEASED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
