"""Counts DynamoDB units, SQS requests, invocations and log bytes of one order, by source."""

from collections.abc import Mapping
from platform import python_version

from benchmarks.cost.counting import Counted, Everything, count_calls, count_everything
from benchmarks.report import Report, Setting, Table, amount
from roundsman_console.facts.cost.figures import OrderUse

ORDERS = ("busy", "quiet", "cold", "statuses", "batch_5", "batch_10")
MEANT = {
    "busy": "instances have handled another order within five seconds",
    "quiet": "the same instances, after longer: marks, holds and circuits are read again",
    "cold": "the first order of new instances",
    "statuses": "busy, with a reply queue that gets three statuses",
    "batch_5": "five orders in one request, five messages an invocation, services quick",
    "batch_10": "ten orders in one request, ten messages an invocation, services quick",
}
FIGURES: Mapping[str, str] = {
    "write_units": "writes",
    "read_units": "reads",
    "sqs_requests": "SQS",
    "statuses": "+ statuses",
    "invocations": "invocations",
    "log_bytes": "log bytes",
}


def measure(setting: Setting) -> Report:
    """Return the counts of one order of four sequential steps, by the state of the stack.

    Raises AssertionError if two runs give different counts.
    """
    found = count_everything(setting.engine(), setting.say)
    again = count_everything(setting.engine(), lambda _: None)
    same = found.orders == again.orders and found.standing == again.standing
    if not same:
        raise AssertionError("two runs counted differently: see benchmarks/cost/counting.py")
    return report(found, count_calls(setting.engine()))


def report(found: Everything, calls: Mapping[str, int]) -> Report:
    """Return the tables: each kind of order, and a busy one's units, requests and calls by source.

    `calls` are those of Python functions by what they are for.
    """
    orders, busy = found.orders, found.counted["busy"]
    return Report(
        [
            Table(
                "An order of four steps",
                ("", *FIGURES.values()),
                [_row(name, orders[name]) for name in ORDERS],
            ),
            _places("Write units, busy", busy.counts.writes),
            _places("Read units, busy", busy.counts.reads),
            _requests(busy),
            _calls(calls),
        ],
        [
            *(f"{name}: {MEANT[name]}." for name in ORDERS),
            "Counted twice, the same both times; but the calls once, by Python "
            f"{python_version()}.",
        ],
    )


def _row(name: str, order: OrderUse) -> list[str]:
    return [name, *(amount(getattr(order, figure)) for figure in FIGURES)]


def _places(title: str, twice: Mapping[tuple[str, str], int]) -> Table:
    rows = [
        [f"{operation} {where}", amount(units / 2)]
        for (operation, where), units in sorted(twice.items(), key=lambda each: (-each[1], each[0]))
    ]
    return Table(title, ("", "units"), rows)


def _requests(busy: Counted) -> Table:
    counts = busy.counts
    kinds = counts.sends, counts.receives, counts.deletes
    names = sorted({*counts.sends, *counts.receives}, key=lambda name: (name[0].islower(), name))
    rows = [[name, *(amount(each[name]) for each in kinds)] for name in names]
    rows.append(["in all", *(amount(sum(each.values())) for each in kinds)])
    return Table("SQS requests, busy", ("", "sends", "receives", "deletes"), rows)


def _calls(calls: Mapping[str, int]) -> Table:
    total = sum(calls.values())
    rows = [[name, amount(count), f"{count / total:.0%}"] for name, count in calls.items()]
    rows.append(["in all", amount(total), "100%"])
    return Table("Calls of Python functions, busy", ("", "calls", "share"), rows)
