"""Scans the repository for secrets and for text that must not be in it (see CONTRIBUTING.md).

    python -m tools.policy_scan

It reads every text file that git tracks or would add. The exit code is 1 if it finds anything. It
needs no network. The linter finds what is in the code only, such as `print` and skipped tests.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import BasePlugin, RegexBasedDetector

ROOT = Path(__file__).resolve().parent.parent

# (rule, what a finding says, pattern). The patterns do not match their own source: they contain an
# escaped dot or a one-letter character class.
PATTERNS = tuple(
    (rule, message, re.compile(pattern))
    for rule, message, pattern in (
        # Formats of secrets that detect-secrets does not know, or knows only between quotes.
        (
            "secret",
            "AWS secret access key: take it out",
            r"(?i)aws.{0,20}secret.{0,20}[=:]\s*[\"']?[a-z0-9/+]{40}(?![a-z0-9/+])",
        ),
        ("secret", "GitHub token: take it out", r"\bgithub_pat_[A-Za-z0-9_]{50,}"),
        ("secret", "payment key: take it out", r"\b[rs]k_live_[A-Za-z0-9]{16,}"),
        ("secret", "npm token: take it out", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("secret", "private key: take it out", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
        (
            "machine-path",
            "an absolute path of one machine",
            r"(?<![\w./~-])/(?:(?:home|Users)/\w|(?:root|work)(?![\w.-])|tmp/\w+/)|\b[A-Z]:\\Users\\",
        ),
        (
            "registry-host",
            "names a package registry's host, which each machine configures",
            r"pypi\.org|pypi\.python\.org|pythonhosted\.org|npmjs\.(?:org|com)|rubygems\.org"
            r"|deb\.debian\.org|(?:archive|security)\.ubuntu\.com|repo1?\.maven\.(?:apache\.)?org"
            r"|crates\.io|(?:docker|ghcr|quay)\.io|proxy\.golang\.org",
        ),
        ("unfinished", "finish it, or open an issue", r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b"),
    )
)
# Lock files of other tools contain the hosts of package registries.
LOCK_FILES = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json"}
NO_SECRETS = {"Public IP (ipv4)"}  # what detect-secrets looks for besides secrets


def scan(path: str, text: str) -> list[str]:
    """Return a line for each finding in a file: the path, the line, what to do, and the rule.

    `path` is relative to the root. A line of text has one finding for each rule at most.
    """
    found = {(1, "lock-file"): "lock with make lock instead"} if _is_lock_file(path) else {}
    for name, detector in _detectors().items():
        if list(detector.analyze_string(text)):
            for line in _lines_with(detector, text) or [1]:
                found[line, "secret"] = f"{name}: take it out"
    for rule, message, pattern in PATTERNS:
        for match in pattern.finditer(text):
            found[text.count("\n", 0, match.start()) + 1, rule] = message
    return [f"{path}:{line}: {found[line, rule]} [{rule}]" for line, rule in sorted(found)]


def _lines_with(detector: RegexBasedDetector, text: str) -> list[int]:
    lines = enumerate(text.splitlines(), start=1)
    return [number for number, line in lines if list(detector.analyze_string(line))]


def _is_lock_file(path: str) -> bool:
    return PurePosixPath(path).name in LOCK_FILES


@cache
def _detectors() -> dict[str, RegexBasedDetector]:
    """The detectors of detect-secrets that know a secret by its format, by the secret's name.

    The others (random text, values of names such as `password`) find test data, and take a minute.
    """
    classes: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return {
        name: found()
        for name, found in classes.items()
        if issubclass(found, RegexBasedDetector) and name not in NO_SECRETS
    }


def read_repository(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of the text files in `root` that git tracks or would add.

    Raises subprocess.CalledProcessError if `root` is not a git checkout.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for path in sorted(set(listed.split("\0"))):
        if path and (root / path).is_file():
            try:
                yield path, (root / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # not a text file


def main() -> int:
    """Scan this repository, print the findings, and return the exit code."""
    try:
        files = list(read_repository(ROOT))
    except (OSError, subprocess.CalledProcessError):
        print(f"The policy scan lists files through git, and {ROOT.name} is no git checkout.")
        return 1
    findings = [finding for path, text in files for finding in scan(path, text)]
    print("\n".join([*findings, f"Policy scan: {len(files)} files, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
