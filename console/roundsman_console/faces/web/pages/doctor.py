"""The doctor's findings."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby

from roundsman_console.aws.links import resource_pages
from roundsman_console.faces.web.addresses import page_of_command
from roundsman_console.facts.finding.report import Finding, in_order
from roundsman_console.facts.finding.table import Severity
from roundsman_console.inspector import Inspector

FOLDED_FROM = 3
"""More findings of one kind are folded away."""


def read(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Check the stack and return the report."""
    report = inspector.check()
    return {
        "report": report,
        "kinds": by_kind(report.findings),
        "severities": Counter(one.kind.severity for one in report.findings),
        "Severity": Severity,
        "folded_from": FOLDED_FROM,
        "unread": report.unread,
        "resources": resource_pages(inspector.stack),
        "page_of_command": page_of_command,
    }


def by_kind(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Return the findings of each kind together, the worst kind first."""
    return [list(alike) for _, alike in groupby(in_order(findings), key=lambda one: one.kind)]
