"""What orders cost, as JSON for scripts."""

from roundsman_console.facts.cost.documents import (
    CostEstimateDocument,
    CostLineDocument,
    CostSpentDocument,
)
from roundsman_console.facts.cost.estimate import Estimate
from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import (
    STANDING,
    BillLine,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import Spent
from roundsman_console.facts.cost.volumes import VOLUMES


def document_of(estimate: Estimate, figures: Figures, prices: Prices) -> CostEstimateDocument:
    """Return the bill as JSON for scripts. Amounts are per month; those in `order`, per order."""
    wanted, bill, units = estimate.wanted, estimate.bill, estimate.units
    volumes = estimate.volumes
    return {
        "region": prices.region,
        "pricesDated": prices.dated,
        "countedOn": figures.recorded_on,
        "asked": {
            "ordersPerMonth": wanted.orders_per_month,
            "steps": wanted.steps,
            "batch": wanted.batch,
            "statuses": wanted.statuses,
            "orderBytes": wanted.order_bytes,
            "resultBytes": wanted.result_bytes,
            "serviceMs": wanted.service_ms,
            "memory": wanted.memory,
            "architecture": wanted.architecture,
            "taskDays": wanted.task_days,
            "orderDays": wanted.order_days,
            "logDays": wanted.log_days,
            "tenants": wanted.tenants,
            "interval": wanted.interval,
            "profile": wanted.profile,
        },
        "order": {
            "writeUnits": round(units.write_units, 6),
            "readUnits": round(units.read_units, 6),
            "sqsRequests": round(units.sqs_requests, 6),
            "invocations": round(units.invocations, 6),
            "gbSeconds": round(units.gb_seconds, 6),
            "logBytes": round(units.log_bytes, 6),
        },
        "usdPerMonth": rounded(bill.usd()),
        "usdPerMillionOrders": rounded(bill.usd_per_million),
        "usdStanding": rounded(bill.usd(STANDING)),
        "usdIdle": rounded(estimate.usd_idle),
        "lines": [line_document(line) for line in bill.lines],
        "volumes": [
            {
                "ordersPerMonth": orders,
                "profiles": {name: rounded(usd[at]) for name, usd in volumes.profiles.items()},
                "elsewhere": {name: rounded(usd[at]) for name, usd in volumes.rivals.items()},
            }
            for at, orders in enumerate(VOLUMES)
        ],
        "cheaperFrom": [
            {"profile": profile, "elsewhere": rival, "ordersPerMonth": orders}
            for (profile, rival), orders in volumes.cheaper_from.items()
        ],
        "elsewhere": [
            {
                "name": rival.name,
                "usdPerMillionOrders": rounded(rival.usd_per_million),
                "counted": rival.counted,
            }
            for rival in estimate.rivals
        ],
    }


def line_document(line: BillLine) -> CostLineDocument:
    """Return one line of a bill as JSON for scripts."""
    return {
        "service": line.service,
        "what": line.what,
        "amount": round(line.amount, 3),
        "unit": line.unit,
        "usd": rounded(line.usd),
        "for": line.kind,
    }


def rounded(usd: float) -> float:
    """Round an amount in USD to a hundredth of a cent."""
    return round(usd, 4)


def spent_document(spent: Spent, prices: Prices) -> CostSpentDocument:
    """Return the cost as JSON for scripts."""
    return {
        "region": prices.region,
        "pricesDated": prices.dated,
        "days": round(spent.days, 4),
        "orders": round(spent.orders),
        "usd": rounded(spent.usd()),
        "usdPerMillionOrders": rounded(spent.usd_per_million),
        "lines": [line_document(line) for line in spent.lines],
        "workflows": [
            {
                "workflow": one.workflow,
                "orders": round(one.orders),
                "decisions": round(one.decisions),
                "usd": rounded(one.usd),
                "usdPerMillionOrders": rounded(one.usd_per_million),
            }
            for one in spent.workflows
        ],
    }
