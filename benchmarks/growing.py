"""The table of how cost and size grow: by number of steps, size of results, parallel width."""

from benchmarks.growth import BY_RESULTS, BY_STEPS, BY_WIDTH, Grown, grown
from benchmarks.report import Report, Setting, Table, amount
from roundsman.values import Json
from roundsman_console.cost.prices import load_prices

HEADINGS = ("", "record, bytes", "writes", "reads", "SQS", "invocations", "USD a million *")
TABLES = {
    "By steps, one after the other": BY_STEPS,
    "By bytes of each result, four steps": BY_RESULTS,
    "By width, one stage": BY_WIDTH,
}


def measure(setting: Setting) -> Report:
    """Each shape once, in a busy stack."""
    found: dict[str, Grown] = {}
    for each in grown(setting.engine()):
        setting.say(f"{each.shape.operations} steps, results of {each.shape.result_bytes} bytes")
        found[each.shape.name] = each
    tables = [
        Table(title, HEADINGS, [_row(found[shape.name]) for shape in shapes])
        for title, shapes in TABLES.items()
    ]
    document: dict[str, Json] = {"growth": {name: _figures(each) for name, each in found.items()}}
    note = "* of units, requests and invocations alone: functions' time and logs come on top."
    return Report(tables, document, [note])


def _row(each: Grown) -> list[str]:
    shape, figures = each.shape, _figures(each)
    name = f"{shape.steps} steps" if shape.width == 1 else f"{shape.width} side by side"
    if shape.width == 1 and shape.result_bytes != BY_STEPS[0].result_bytes:
        name = f"{shape.result_bytes:,} bytes"
    return [name, *(amount(value) for value in figures.values())]


def _figures(each: Grown) -> dict[str, float]:
    counts, prices = each.counts, load_prices()
    invocations = sum(counts.invocations.values())
    usd = (
        prices.usd("dynamodb.write", counts.write_units)
        + prices.usd("dynamodb.read", counts.read_units)
        + prices.usd("sqs.request", counts.sqs_requests)
        + prices.usd("lambda.request", invocations)
    )
    return {
        "item_bytes": counts.records[-1],
        "write_units": counts.write_units,
        "read_units": counts.read_units,
        "sqs_requests": counts.sqs_requests,
        "invocations": invocations,
        "usd_per_million": round(usd * 1_000_000, 2),
    }
