"""How a bulk run finds its orders and sends its commands, in words."""

from roundsman.model.bulk_run import (
    Terms,
)
from roundsman_console.acts.bulk.dry_run import Tried
from roundsman_console.base.counted import counted


def search_words(tried: Tried) -> str:
    """Return what it took to find the orders, in words."""
    examined = counted(tried.examined, "task")
    units = counted(tried.read_units, "read unit")
    return f"Examined to find them: {examined}, at least {units}"


def order_of_going(terms: Terms, eligible: int) -> str:
    """Return how the commands of a run are sent, in words."""
    rate = f"at most {terms.rate:g} per second"
    if not terms.canary:
        return f"Commands are sent {rate}."
    if terms.canary >= eligible:
        return "All are sent at once; the run then waits for their results."
    return (
        f"The first {terms.canary} are sent; the rest follow when their results are known, {rate}."
    )
