"""Scans the repository for secrets and violations of the project rules (see CONTRIBUTING.md).

    python -m tools.policy_scan

It reads every text file that git tracks or would add. The exit code is 1 if it finds anything.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.policy_rules import RULES, File, Finding

ROOT = Path(__file__).resolve().parent.parent

# (rule, path) -> why this file may break the rule. An entry that is not needed is an error.
EXCEPTIONS: Mapping[tuple[str, str], str] = {}


def scan(files: Iterable[File], exceptions: Mapping[tuple[str, str], str]) -> list[Finding]:
    """Return all findings that no exception covers, and a finding for each unused exception."""
    findings = [finding for file in files for rule in RULES for finding in rule(file)]
    used = {(finding.rule, finding.path) for finding in findings} & exceptions.keys()
    stale = [
        Finding("exception", path, 1, f"no longer breaks {rule}: take its exception out")
        for rule, path in sorted(exceptions.keys() - used)
    ]
    return [item for item in findings if (item.rule, item.path) not in used] + stale


def read_repository(root: Path) -> list[File]:
    """Return the text files in `root` that git tracks or would add.

    Raises subprocess.CalledProcessError if `root` is not a git checkout.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = [path for path in sorted(set(listed.split("\0"))) if path and (root / path).is_file()]
    return [file for path in paths if (file := _read(root, path))]


def _read(root: Path, path: str) -> File | None:
    try:
        return File(path, (root / path).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return None


def main() -> int:
    """Scan this repository, print the findings, and return the exit code."""
    try:
        files = read_repository(ROOT)
    except (OSError, subprocess.CalledProcessError):
        print(f"The policy scan lists files through git, and {ROOT.name} is no git checkout.")
        return 1
    findings = scan(files, EXCEPTIONS)
    for finding in findings:
        print(finding)
    print(f"Policy scan: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
