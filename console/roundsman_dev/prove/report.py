"""What a proof has found, as JSON. A pure function of the document of the proof."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Literal

from roundsman.model.instants import SECOND, iso
from roundsman_console.facts.audit.checks import Verdict
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.report import MOST_LISTED
from roundsman_console.facts.audit.stored_order import BrokenPromise
from roundsman_dev.prove.application.orders import Treatment, order_of
from roundsman_dev.prove.checks import AnyPromise, PromiseResult, check_proof
from roundsman_dev.prove.document import FaultOutcome, MadeFault, ProofDocument
from roundsman_dev.prove.documents import (
    FaultDocument,
    LatencyDocument,
    ProofDocumentOfRun,
    ProofReportDocument,
    ViolationDocument,
)
from roundsman_dev.prove.log_checks import failure_counts
from roundsman_dev.prove.stored_lines import lines_of

PERCENTILES = (50, 90, 99)


def report_of(document: ProofDocument) -> ProofReportDocument:
    """Judge a proof, and return what was found."""
    results = check_proof(document)
    rows = document.ledger
    return {
        "verdict": verdict_of(document, results),
        "run": _run(document),
        "sent": len(document.sent),
        "copies": sum(one.copies - 1 for one in document.sent),
        "stored": len(document.orders),
        "ended": dict(sorted(Counter(str(one.task.state) for one in document.orders).items())),
        "effects": sum(row.stands for row in rows),
        "refusedByFence": sum(row.fenced for row in rows),
        "promises": [
            {
                "promise": promise.name,
                "says": promise.value,
                "verdict": _WORDS[result.verdict],
                "judged": result.judged,
                "violations": len(result.violations),
                "unknown": result.unknown.total(),
            }
            for promise, result in results.items()
        ],
        "violations": _violations(results),
        "notJudged": [
            {"promise": promise.name, "why": why, "times": times}
            for promise, result in results.items()
            for why, times in result.unknown.most_common()
        ],
        "unjudged": [promise.name for promise in Promise if promise not in results],
        "latencies": latencies(document),
        "spent": [
            {"service": one.service, "what": one.what, "usd": one.usd}
            for one in document.circumstances.spent
        ],
        "unpriced": document.circumstances.unpriced,
        "faults": [_fault(one) for one in document.faults],
        "functionFailures": [
            {
                "function": one.function,
                "what": one.what,
                "because": one.because,
                "times": one.times,
            }
            for one in failure_counts(document)
        ],
        "refusedRights": [
            one.why for one in document.faults if one.outcome is FaultOutcome.REFUSED
        ],
        "givenUp": [
            {"queue": queue.name, "messages": queue.dead} for queue in document.queues if queue.dead
        ],
    }


_WORDS: Mapping[Verdict, Literal["followed", "broken", "unknown"]] = {
    Verdict.FOLLOWED: "followed",
    Verdict.BROKEN: "broken",
    Verdict.UNKNOWN: "unknown",
}


def verdict_of(
    document: ProofDocument, results: Mapping[AnyPromise, PromiseResult]
) -> Literal["kept", "broken", "unfinished"]:
    """Return what a proof says as a whole.

    A promise that cannot be judged in every part does not make it unfinished: an audit never can
    judge the times of steps that were undone, for example.
    """
    if any(result.violations for result in results.values()):
        return "broken"
    whole = document.circumstances.finished and not document.unread
    return "kept" if whole else "unfinished"


def hash_of(document: ProofDocument) -> str:
    """Return the SHA-256 of the file of all that was seen."""
    found = hashlib.sha256()
    for line in lines_of(document):
        found.update(line.encode())
    return found.hexdigest()


def _run(document: ProofDocument) -> ProofDocumentOfRun:
    place = document.circumstances
    plans = {
        order.task.workflow: order.plan.hash for order in document.orders if order.plan is not None
    }
    return {
        "run": place.run,
        "region": place.region,
        "local": place.local,
        "version": place.version,
        "runtime": place.runtime,
        "templates": dict(sorted(place.templates.items())),
        "plans": dict(sorted(plans.items())),
        "seen": hash_of(document),
        "began": iso(place.began_at),
        "ended": iso(place.ended_at),
        "finished": place.finished,
    }


def _violations(results: Mapping[AnyPromise, PromiseResult]) -> list[ViolationDocument]:
    found: list[ViolationDocument] = []
    for promise, result in results.items():
        for one in result.violations:
            if isinstance(one.finding, BrokenPromise) and len(found) < MOST_LISTED:
                found.append(
                    {
                        "promise": promise.name,
                        "order": one.order_id,
                        "what": one.finding.what,
                        "rows": list(one.finding.rows),
                    }
                )
    return found


def latencies(document: ProofDocument) -> list[LatencyDocument]:
    """Return how long orders took, by how the services treated them."""
    by_treatment: dict[Treatment, list[int]] = {}
    for order in document.orders:
        task, asked = order.task, order_of(order.task.task_id)
        if asked is not None and task.ended_at is not None:
            took = task.ended_at - max(task.created_at, task.start_at)
            by_treatment.setdefault(asked.treatment, []).append(took)
    found: list[LatencyDocument] = []
    for treatment in Treatment:
        if times := sorted(by_treatment.get(treatment, [])):
            p50, p90, p99 = (percentile(times, one) / SECOND for one in PERCENTILES)
            found.append(
                {
                    "treatment": f"the services {treatment}",
                    "orders": len(times),
                    "p50": p50,
                    "p90": p90,
                    "p99": p99,
                    "longest": times[-1] / SECOND,
                }
            )
    return found


def percentile(times: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile of sorted times: the least that so many are within.

    Raises IndexError for no times.
    """
    return times[max(0, ceil(len(times) * percent / 100) - 1)]


def _fault(one: MadeFault) -> FaultDocument:
    return {
        "fault": one.name,
        "outcome": one.outcome.value,
        "why": one.why,
        "seconds": max(0, one.ended_at - one.began_at) / SECOND,
    }
