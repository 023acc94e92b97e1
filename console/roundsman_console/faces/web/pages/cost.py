"""What the stack has cost, with the figures of `roundsman cost --since`, read when asked for."""

from collections.abc import Mapping

from roundsman_console.facts.cost.live import DEFAULT_SINCE, UsageRead, read_since, read_usage
from roundsman_console.facts.cost.memory import MEMORY_WORDS, memory_tables
from roundsman_console.facts.cost.prices import load_prices
from roundsman_console.facts.cost.usage import (
    came_words,
    line_rows,
    no_figures,
    price_words,
    sum_words,
    workflow_rows,
)
from roundsman_console.inspector import Inspector


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the cost of a period, if one is asked for; else ask AWS nothing.

    A stack on this machine has no figures. Raises ConsoleError for a period that is not possible.
    """
    if not inspector.stack.has_cloudwatch:
        return {"since": None, "cost": None}
    since = given.get("since", "").strip()
    if not since:
        return {"since": DEFAULT_SINCE, "cost": None}
    found = read_usage(inspector.stack, read_since(since), load_prices())
    return {"since": since, "cost": _shown(found)}


def _shown(found: UsageRead) -> Mapping[str, object]:
    spent = found.spent
    return {
        "nothing": no_figures(spent),
        "came": came_words(spent),
        "lines": line_rows(spent),
        "workflows": workflow_rows(spent),
        "memory": memory_tables(spent.functions),
        "memory_words": MEMORY_WORDS,
        "sum": sum_words(spent),
        "prices": price_words(spent),
        "metrics": found.metrics,
        "usd_of_reading": f"{found.usd_of_reading:.4f}",
    }
