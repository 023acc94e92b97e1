"""Judges the orders of a stack, or those of a file, and counts what was found."""

from collections.abc import Callable, Iterable

from roundsman.errors import CallRefused, TryAgain
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.facts.audit.checks import judge
from roundsman_console.facts.audit.reading import AuditCost, OrderReader, Scope, UnreadOrder
from roundsman_console.facts.audit.report import AuditReport
from roundsman_console.facts.audit.stored_order import StoredOrder


def audit_stack(
    stack: DeployedStack,
    scope: Scope,
    estimate: AuditCost,
    *,
    keep: Callable[[StoredOrder], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> AuditReport:
    """Read and judge the orders of a stack.

    `keep` is called with each order that was judged. If AWS throttles or refuses a call, the report
    says why it ended early; CallRefused is raised only if no order was read yet.
    """
    report = AuditReport(stack.name, now(), scope.since, estimate.read_units)
    reader = OrderReader(stack, scope)
    try:
        for part in reader.read():
            for found in part:
                if isinstance(found, UnreadOrder):
                    report.add_unread(found.order_id, found.why)
                else:
                    report.add(*found)
                    keep(found[0])
            progress(f"{len(reader.seen):,} of {estimate.orders:,} orders read")
        if scope.deep:
            report.removed = 0
            for gone in reader.removed():
                report.removed += gone
                progress(f"{report.removed:,} orders without a record")
    except (TryAgain, CallRefused) as error:
        if isinstance(error, CallRefused) and not report.orders:
            raise  # nothing was read: the error of the call says what to do about it
        report.stopped = str(error)
    report.more = reader.cut
    return report


def audit_orders(orders: Iterable[StoredOrder]) -> AuditReport:
    """Judge orders that were read before."""
    report = AuditReport(None, now())
    for order in orders:
        report.add(order, judge(order))
    return report
