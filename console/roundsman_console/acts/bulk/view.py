"""Dry runs and bulk runs as JSON for scripts."""

from collections.abc import Sequence
from typing import cast

from roundsman.command_line import REASON, command_line
from roundsman.model.bulk_run import (
    BulkRecord,
    OrderGroup,
    OrderNote,
    OrderResult,
    Run,
    RunState,
)
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.instants import SECOND, iso
from roundsman_console.acts.bulk.dry_run import Tried
from roundsman_console.acts.documents.bulk import (
    BulkOrderDocument,
    BulkRunDocument,
    BulkRunSummaryDocument,
    DryRunDocument,
    ReasonDocument,
)
from roundsman_console.base.result import json_of


def tried_document(run: Run, tried: Tried, go_ahead: str) -> DryRunDocument:
    """Return a dry run as JSON for scripts; `go_ahead` is the command line of the real run."""
    found: DryRunDocument = {
        "command": COMMAND_KINDS[type(run.event)],
        "dryRun": True,
        "by": run.by,
        "reason": run.reason,
        "selection": run.selection,
        "selected": tried.selected,
        "examined": tried.examined,
        "lookedAt": tried.looked_at,
        "eligible": {"orders": tried.eligible, "samples": list(tried.samples)},
        "refused": _kinds(tried.refused),
        "held": _kinds(tried.held),
        "lostSignals": _kinds(tried.lost_signals),
        "goAhead": go_ahead,
    }
    if tried.plans is not None:
        found["plans"] = tried.plans
    if tried.inputs is not None:
        found["inputs"] = [
            {"orderId": order, "changes": changes} for order, changes in tried.inputs
        ]
    return cast("DryRunDocument", json_of(found))


def run_document(
    record: BulkRecord, is_open: bool, notes: Sequence[OrderNote] | None = None
) -> BulkRunDocument:
    """Return a run as JSON for scripts.

    `is_open` says whether the stack still works on it. `notes` are all orders that failed again or
    were refused; None to leave them out.
    """
    progress, terms = record.progress, record.run.terms
    summary = run_summary(record)
    found: BulkRunDocument = {
        "runId": summary["runId"],
        "command": summary["command"],
        "by": summary["by"],
        "reason": summary["reason"],
        "selection": summary["selection"],
        "startedAt": summary["startedAt"],
        "state": summary["state"],
        "why": summary["why"],
        "selected": summary["selected"],
        "sent": summary["sent"],
        "failedAgain": summary["failedAgain"],
        "notReached": summary["notReached"],
        "dryRun": False,
        "sender": record.run.starter,
        "savedAt": iso(record.saved_at) if record.version else None,
        "open": is_open,
        "completed": progress.count(OrderResult.COMPLETED),
        "undone": progress.count(OrderResult.UNDONE),
        "cancelled": progress.count(OrderResult.CANCELLED),
        "taken": progress.count(OrderResult.TAKEN),
        "failures": [
            {
                "group": kind.key,
                "failure": kind.reason,
                "orders": kind.orders,
                "samples": list(kind.samples),
            }
            for kind in progress.failed
        ],
        "refused": _kinds(progress.refused),
        "underWay": len(progress.on_their_way),
        "rate": terms.rate,
        "canary": terms.canary,
        "canaryWait": terms.patience / SECOND,
        "stopAt": terms.stop_at,
        "atOnce": terms.at_once,
        "requests": list(record.requests),
        "resume": resume_command(record),
    }
    if notes is not None:
        found["orders"] = [_order_document(one) for one in notes]
    return found


def _order_document(note: OrderNote) -> BulkOrderDocument:
    return {
        "orderId": note.order,
        "result": "failedAgain" if note.failed else "refused",
        "sentence": note.reason,
    }


def resume_command(record: BulkRecord) -> str | None:
    """Return the command that resumes the run; None if it cannot be resumed."""
    if record.state not in (RunState.PAUSED, RunState.STOPPED):
        return None
    return command_line("bulk resume", record.run.id, options=REASON)


def run_summary(record: BulkRecord) -> BulkRunSummaryDocument:
    """Return a run in short as JSON for scripts."""
    run, progress = record.run, record.progress
    return {
        "runId": run.id,
        "command": COMMAND_KINDS[type(run.event)],
        "by": run.by,
        "reason": run.reason,
        "selection": run.selection,
        "startedAt": iso(run.started_at),
        "state": record.state.value,
        "why": record.why or None,
        "selected": run.selected,
        "sent": progress.sent,
        "failedAgain": progress.count(OrderResult.FAILED),
        "notReached": record.left,
    }


def _kinds(kinds: Sequence[OrderGroup]) -> list[ReasonDocument]:
    return [
        {"reason": kind.reason, "orders": kind.orders, "samples": list(kind.samples)}
        for kind in kinds
    ]
