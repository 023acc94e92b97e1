"""The files of a release are those of a commit, twice the same, and only of a verified version."""

import hashlib
import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.release_files import SUMS, NoRelease, distributions, main, release
from tools.release_parts import LOCKS

ROOT = Path(__file__).resolve().parents[2]
MADE_AT = 1_800_000_000  # 2027-01-15T08:00:00Z
PROJECT = """\
[project]
name = "roundsman"
version = "0.1.0"
description = "A copy"
license = "MIT"
dependencies = ["tenacity"]
"""


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a commit of what a release is made of, but no code."""
    folder = tmp_path / "project"
    for file in (*LOCKS, "CHANGELOG.md"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, folder / file)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "code.py").write_text("committed")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "All", "--date", "2027-01-15T08:00:00Z")
    return folder


def build(sources: Path, made_at: int) -> Mapping[str, bytes]:
    return {"roundsman-0.1.0.tar.gz": (sources / "code.py").read_bytes()}


def test_the_sums_are_those_of_all_other_files(project: Path) -> None:
    files = release(project, "HEAD", build)
    assert set(files) == {"roundsman-0.1.0.tar.gz", "roundsman-0.1.0.cdx.json", SUMS}
    for line in files[SUMS].decode().splitlines():
        found, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == found
    assert len(files[SUMS].splitlines()) == len(files) - 1
    assert hashlib.sha256(b"committed").hexdigest() in files["roundsman-0.1.0.cdx.json"].decode()


def test_what_is_not_committed_is_in_no_file(project: Path) -> None:
    before = release(project, "HEAD", build)
    (project / "code.py").write_text("not committed")
    assert release(project, "HEAD", build) == before


def test_two_builds_that_differ_are_no_release(project: Path) -> None:
    def names_its_folder(sources: Path, made_at: int) -> Mapping[str, bytes]:
        return {**build(sources, made_at), "roundsman.whl": str(sources).encode()}

    with pytest.raises(NoRelease, match=r"two builds of HEAD differ in roundsman\.whl"):
        release(project, "HEAD", names_its_folder)


def test_a_version_that_nobody_verified_is_no_release(project: Path) -> None:
    (project / "pyproject.toml").write_text(PROJECT.replace("0.1.0", "0.2.0"))
    git(project, "commit", "--quiet", "--all", "--message", "Another version")
    with pytest.raises(NoRelease, match=r"version is 0\.2\.0, and the newest release is another"):
        release(project, "HEAD", build)


def test_what_is_no_commit_is_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--commit", "absent"], project) == 1
    assert capsys.readouterr().err.startswith("Nothing is written: git cannot read the commit")
    assert not (project / "dist").exists()


def test_sources_that_cannot_be_built_are_one_sentence(project: Path) -> None:
    (project / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(NoRelease, match="the sdist cannot be built: "):
        distributions(project, MADE_AT)


@pytest.mark.exhaustive
def test_the_wheel_is_whole_although_it_is_built_from_the_source_distribution(
    tmp_path: Path,
) -> None:
    """The stacks, the locks and each package. Every file has the time of the commit."""
    sources = tmp_path / "sources"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, sources / name)
    files = distributions(sources, MADE_AT)
    [archive, wheel] = [files[name] for name in sorted(files, reverse=True)][:2]
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert {member.mtime for member in opened.getmembers()} == {MADE_AT}
    with zipfile.ZipFile(io.BytesIO(wheel)) as found:
        names = set(found.namelist())
        assert {one.date_time for one in found.infolist()} == {(2027, 1, 15, 8, 0, 0)}
    for package in ("roundsman", "roundsman_console", "roundsman_dev", "roundsman_testing"):
        assert f"{package}/__init__.py" in names
    assert {"roundsman_dev/stacks/engine.yaml", "roundsman_console/locks/emulator.txt"} <= names
