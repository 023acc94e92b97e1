"""Adds up the JUnit reports of several pytest runs and prints one line, `N passed, N failed`.

    python -m tools.totals .cache/reports

The exit code is 1 if a test failed, if a test was skipped (this project does not allow it), or if
no test ran.
"""

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def totals(folder: Path) -> Counter[str]:
    """Return the numbers of passed, failed and skipped tests in all reports of `folder`."""
    counts: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    for report in sorted(folder.glob("*.xml")):
        counts.update(totals_of(report))
    return counts


def totals_of(report: Path) -> Counter[str]:
    """Return the numbers of passed, failed and skipped tests in one report.

    Raises OSError or ElementTree's ParseError if the report cannot be read.
    """
    counts: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    # pytest has just written this report, so no untrusted XML is parsed.
    for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        counts["failed"] += failed
        counts["skipped"] += skipped
        counts["passed"] += int(suite.get("tests", 0)) - failed - skipped
    return counts


def main() -> int:
    """Print the totals of the folder on the command line, and return the exit code."""
    counts = totals(Path(sys.argv[1]))
    if counts["skipped"]:
        print(f"{counts['skipped']} tests were skipped: make each run, or take it out")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 0 if counts["passed"] and not counts["failed"] and not counts["skipped"] else 1


if __name__ == "__main__":
    sys.exit(main())
