"""Dry runs and bulk runs as JSON for scripts."""

from collections.abc import Sequence

from roundsman.inspector.bulk.dry_run import Tried
from roundsman.inspector.bulk.run import OrderGroup, OrderResult, Run, RunState
from roundsman.inspector.bulk.store import StoredRun
from roundsman.inspector.documents.bulk import (
    BulkRunDocument,
    BulkRunSummaryDocument,
    DryRunDocument,
    ReasonDocument,
)
from roundsman.inspector.operate.corrections import change_documents
from roundsman.inspector.operate.newest_plan import plan_document
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.instants import SECOND, iso


def tried_document(run: Run, tried: Tried, go_ahead: str) -> DryRunDocument:
    """Return a dry run as JSON for scripts; `go_ahead` is the command line of the real run."""
    found: DryRunDocument = {
        "command": COMMAND_KINDS[type(run.event)],
        "dryRun": True,
        "by": run.by,
        "reason": run.reason,
        "selection": run.selection,
        "selected": tried.selected,
        "lookedAt": tried.looked_at,
        "eligible": {"orders": tried.eligible, "samples": list(tried.samples)},
        "refused": _kinds(tried.refused),
        "held": _kinds(tried.held),
        "goAhead": go_ahead,
    }
    if tried.plans is not None:
        found["plans"] = [{**plan_document(one.move), "orders": one.orders} for one in tried.plans]
    if tried.inputs is not None:
        found["inputs"] = [
            {"orderId": order, "changes": change_documents(changes)}
            for order, changes in tried.inputs
        ]
    return found


def run_document(record: StoredRun, at: int) -> BulkRunDocument:
    """Return a run as JSON for scripts, at `at` (epoch ms)."""
    run, progress = record.run, record.progress
    terms = run.terms
    return {
        "runId": run.id,
        "command": COMMAND_KINDS[type(run.event)],
        "dryRun": False,
        "by": run.by,
        "reason": run.reason,
        "selection": run.selection,
        "startedAt": iso(run.started_at),
        "savedAt": iso(record.saved_at),
        "state": record.state.value,
        "why": record.why or None,
        "selected": run.selected,
        "sent": progress.sent,
        "completed": progress.count(OrderResult.COMPLETED),
        "undone": progress.count(OrderResult.UNDONE),
        "cancelled": progress.count(OrderResult.CANCELLED),
        "taken": progress.count(OrderResult.TAKEN),
        "failedAgain": progress.count(OrderResult.FAILED),
        "failures": [
            {
                "group": kind.key,
                "failure": kind.said,
                "orders": kind.orders,
                "samples": list(kind.samples),
            }
            for kind in progress.failed
        ],
        "refused": _kinds(progress.refused),
        "underWay": len(progress.on_their_way),
        "notReached": run.selected - progress.reached,
        "rate": terms.rate,
        "canary": terms.canary,
        "canaryWait": terms.patience / SECOND,
        "stopAt": terms.stop_at,
        "atOnce": terms.at_once,
        "carriedOn": list(record.carried_on),
        "resume": resume_command(record, at),
    }


def is_carried_on(record: StoredRun, at: int) -> bool:
    """Whether the run is running and a process holds it at `at` (epoch ms)."""
    held = record.holder is not None and record.holder.until > at
    return record.state is RunState.RUNNING and held


def resume_command(record: StoredRun, at: int) -> str | None:
    """Return the command that resumes the run; None if it is complete or a process holds it."""
    left = record.run.selected - record.progress.reached or record.progress.on_their_way
    if not left or is_carried_on(record, at):
        return None
    return f"roundsman bulk resume {record.run.id}"


def run_summary(record: StoredRun) -> BulkRunSummaryDocument:
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
        "notReached": run.selected - progress.reached,
    }


def _kinds(kinds: Sequence[OrderGroup]) -> list[ReasonDocument]:
    return [
        {"reason": kind.said, "orders": kind.orders, "samples": list(kind.samples)}
        for kind in kinds
    ]
