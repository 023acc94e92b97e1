"""The result of the doctor's checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.model.instants import iso
from roundsman_console.inspector.doctor.facts import Finding, Unseen
from roundsman_console.inspector.doctor.repair import DOES, Repair
from roundsman_console.inspector.documents.doctor import (
    FindingDocument,
    RepairDocument,
    ReportDocument,
)


@dataclass(frozen=True, slots=True)
class Looked:
    """What the doctor has read."""

    stack: str
    """The name of the stack."""
    at: int
    """When it was read, in epoch ms."""
    tasks: dict[str, int]
    """The number of tasks, by lane."""
    cut: Sequence[str]
    """The lanes that have more tasks than were read."""
    rows: int | None = None
    """The number of rows that the deep look read; None without a deep look."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of one check of a stack, and what was repaired."""

    looked: Looked
    findings: Sequence[Finding]
    unseen: Sequence[Unseen]
    repairs: Sequence[tuple[Repair, bool]] | None = None
    """The repairs, each with whether its finding is gone; None without `--fix`."""

    @property
    def well(self) -> bool:
        """Whether there is no finding, and every part that the deployment has was read."""
        return not self.findings and all(one.lacking for one in self.unseen)

    def document(self) -> ReportDocument:
        """Return the report as JSON for scripts."""
        looked = self.looked
        repairs = self.repairs
        return {
            "stack": looked.stack,
            "at": iso(looked.at),
            "well": self.well,
            "looked": {
                "open": looked.tasks.get("open", 0),
                "archived": looked.tasks.get("archived", 0),
                "cut": list(looked.cut),
                "deepRows": looked.rows,
            },
            "findings": [_finding(one) for one in self.findings],
            "unseen": [
                {"what": one.what, "why": one.why, "lacking": one.lacking} for one in self.unseen
            ],
            "repairs": None if repairs is None else [_repair(*one) for one in repairs],
        }


def _finding(one: Finding) -> FindingDocument:
    return {
        "kind": one.kind,
        "severity": one.entry.severity,
        "where": one.where,
        "evidence": one.evidence,
        "means": one.entry.means,
        "repair": one.entry.repair,
        "command": one.command,
        "fixable": one.fixable,
    }


def _repair(repair: Repair, mended: bool) -> RepairDocument:
    return {
        "kind": repair.finding.kind,
        "where": repair.finding.where,
        "does": DOES,
        "mended": mended,
        "problem": repair.problem,
    }
