"""Adds up the JUnit reports of several pytest runs: one line, `N passed, N failed`.

    python -m tools.totals .cache/reports

Exits 1 if a test failed, if one was skipped (here a test runs or is not there), or if none ran.
"""

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def totals(folder: Path) -> Counter[str]:
    """How many tests passed, failed and were skipped in all reports of `folder`."""
    counts: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    for report in sorted(folder.glob("*.xml")):
        counts.update(totals_of(report))
    return counts


def totals_of(report: Path) -> Counter[str]:
    """The same of one report. Raises OSError and ElementTree's ParseError."""
    counts: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    # The report is pytest's own, written just before: no foreign XML is parsed.
    for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        counts["failed"] += failed
        counts["skipped"] += skipped
        counts["passed"] += int(suite.get("tests", 0)) - failed - skipped
    return counts


def main() -> int:
    """Print the line for the folder named on the command line."""
    counts = totals(Path(sys.argv[1]))
    if counts["skipped"]:
        print(f"{counts['skipped']} tests were skipped: make each run, or take it out")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 0 if counts["passed"] and not counts["failed"] and not counts["skipped"] else 1


if __name__ == "__main__":
    sys.exit(main())
