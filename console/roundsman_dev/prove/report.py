"""What a proof has found. A pure function of the document of the proof."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Literal

from roundsman_console.base.constraints import Count
from roundsman_console.base.result import EPOCH_MS, MS, Shown
from roundsman_console.facts.audit.checks import Verdict
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.report import MOST_LISTED
from roundsman_console.facts.audit.stored_order import BrokenPromise
from roundsman_dev.prove.application.orders import Treatment, order_of
from roundsman_dev.prove.checks import AnyPromise, PromiseResult, check_proof
from roundsman_dev.prove.document import FaultOutcome, MadeFault, ProofDocument, SpentLine
from roundsman_dev.prove.log_checks import FailureCount, failure_counts
from roundsman_dev.prove.stored_lines import lines_of

PERCENTILES = (50, 90, 99)

Milliseconds = Annotated[int, Shown(unit=MS)]
EpochMs = Annotated[int, Shown(unit=EPOCH_MS)]


@dataclass(frozen=True, slots=True)
class ProvenPromise:
    """One promise, and what is known of it."""

    promise: str
    """Its name, such as `IN_ORDER`."""
    says: str
    """The promise as a sentence."""
    verdict: Verdict
    judged: Count
    """The number of orders, or of keys of the ledger, of which it was judged; 1 for a promise of
    the run as a whole."""
    violations: Count
    unknown: Count
    """How often it cannot be judged, or not in every part."""


@dataclass(frozen=True, slots=True)
class ProofViolation:
    """One way in which a promise was broken."""

    promise: str
    order: str | None
    """Null for a promise of the run as a whole."""
    what: str
    rows: list[int]
    """The `seq` of the rows of the order's history that show it."""


@dataclass(frozen=True, slots=True)
class NotJudged:
    """Why a promise cannot be judged."""

    promise: str
    why: str
    times: Count


@dataclass(frozen=True, slots=True)
class ProofLatency:
    """How long orders took from their acceptance to their end, in seconds."""

    treatment: str
    """How the services treated them: `the services answer at once`."""
    orders: Count
    p50: Milliseconds
    p90: Milliseconds
    p99: Milliseconds
    longest: Milliseconds


@dataclass(frozen=True, slots=True)
class ReportedFault:
    """A fault that was to be made while orders were under way."""

    fault: str
    outcome: FaultOutcome
    why: str
    """What was refused, or what failed; empty if it was made."""
    seconds: Milliseconds
    """For how long; 0 if it was not made."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The messages of a dead-letter queue."""

    queue: str
    messages: Count


@dataclass(frozen=True, slots=True)
class ProofRun:
    """Where and how the proof was made."""

    run: str
    """The name of its stack."""
    region: str
    local: bool
    """Whether it was a local AWS and not an account."""
    version: str
    runtime: str
    templates: Mapping[str, str]
    """The SHA-256 of each template of the stack, by its file."""
    plans: Mapping[str, str]
    """The hash of the plan of each workflow."""
    seen: str
    """The SHA-256 of the file of all that was seen."""
    began: EpochMs
    ended: EpochMs
    finished: bool
    """Whether every order had ended when it was read; otherwise the time was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """What a proof has found."""

    verdict: Literal["kept", "broken", "unfinished"]
    """Broken if one promise was broken; unfinished if none was, and the time was over before every
    order had ended, or an order could not be read."""
    run: ProofRun
    sent: Count
    """The number of orders."""
    copies: Count
    """How many order events were sent beside the first of each order."""
    stored: Count
    ended: Mapping[str, int]
    """The number of orders by the state of their task."""
    effects: Count
    """The number of effects that stand."""
    refused_by_fence: Count
    """The number of calls that the services refused because the key was undone."""
    promises: Sequence[ProvenPromise]
    violations: Sequence[ProofViolation]
    """At most 1,000."""
    not_judged: Sequence[NotJudged]
    unjudged: Sequence[str]
    """The promises of an audit that neither records nor the ledger show."""
    latencies: Sequence[ProofLatency]
    spent: Sequence[SpentLine]
    unpriced: str
    """Why the counts of CloudWatch could not be read; empty if they were."""
    faults: Sequence[ReportedFault]
    function_failures: Sequence[FailureCount]
    """What failed by the logs of the functions."""
    refused_rights: Sequence[str]
    """What a fault needed and was refused."""
    given_up: Sequence[GivenUp]
    """The dead-letter queues that have messages."""


def report_of(document: ProofDocument) -> ProofReport:
    """Judge a proof, and return what was found."""
    results = check_proof(document)
    rows = document.ledger
    return ProofReport(
        verdict=verdict_of(document, results),
        run=_run(document),
        sent=len(document.sent),
        copies=sum(one.copies - 1 for one in document.sent),
        stored=len(document.orders),
        ended=dict(sorted(Counter(str(one.task.state) for one in document.orders).items())),
        effects=sum(row.stands for row in rows),
        refused_by_fence=sum(row.fenced for row in rows),
        promises=[
            ProvenPromise(
                promise.name,
                promise.value,
                result.verdict,
                result.judged,
                len(result.violations),
                result.unknown.total(),
            )
            for promise, result in results.items()
        ],
        violations=_violations(results),
        not_judged=[
            NotJudged(promise.name, why, times)
            for promise, result in results.items()
            for why, times in result.unknown.most_common()
        ],
        unjudged=[promise.name for promise in Promise if promise not in results],
        latencies=latencies(document),
        spent=document.circumstances.spent,
        unpriced=document.circumstances.unpriced,
        faults=[_fault(one) for one in document.faults],
        function_failures=failure_counts(document),
        refused_rights=[one.why for one in document.faults if one.outcome is FaultOutcome.REFUSED],
        given_up=[GivenUp(queue.name, queue.dead) for queue in document.queues if queue.dead],
    )


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


def _run(document: ProofDocument) -> ProofRun:
    place = document.circumstances
    plans = {
        order.task.workflow: order.plan.hash for order in document.orders if order.plan is not None
    }
    return ProofRun(
        run=place.run,
        region=place.region,
        local=place.local,
        version=place.version,
        runtime=place.runtime,
        templates=dict(sorted(place.templates.items())),
        plans=dict(sorted(plans.items())),
        seen=hash_of(document),
        began=place.began_at,
        ended=place.ended_at,
        finished=place.finished,
    )


def _violations(results: Mapping[AnyPromise, PromiseResult]) -> Sequence[ProofViolation]:
    found = [
        ProofViolation(promise.name, one.order_id, one.finding.what, list(one.finding.rows))
        for promise, result in results.items()
        for one in result.violations
        if isinstance(one.finding, BrokenPromise)
    ]
    return found[:MOST_LISTED]


def latencies(document: ProofDocument) -> Sequence[ProofLatency]:
    """Return how long orders took, by how the services treated them."""
    by_treatment: dict[Treatment, list[int]] = {}
    for order in document.orders:
        task, asked = order.task, order_of(order.task.task_id)
        if asked is not None and task.ended_at is not None:
            took = task.ended_at - max(task.created_at, task.start_at)
            by_treatment.setdefault(asked.treatment, []).append(took)
    found: list[ProofLatency] = []
    for treatment in Treatment:
        if times := sorted(by_treatment.get(treatment, [])):
            p50, p90, p99 = (percentile(times, one) for one in PERCENTILES)
            name = f"the services {treatment}"
            found.append(ProofLatency(name, len(times), p50, p90, p99, times[-1]))
    return found


def percentile(times: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile of sorted times: the least that so many are within.

    Raises IndexError for no times.
    """
    return times[max(0, ceil(len(times) * percent / 100) - 1)]


def _fault(one: MadeFault) -> ReportedFault:
    return ReportedFault(one.name, one.outcome, one.why, max(0, one.ended_at - one.began_at))
