"""Checks the options of `roundsman cost`; a value out of range becomes a one-sentence error."""

from math import isfinite

from roundsman.definition.workflow import MOST_SEARCH_FIELDS
from roundsman.model.record_limits import LARGEST_RESULT, RESULTS_LIMIT
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.facts.cost.model import PROFILES, Wanted

MOST_STEPS = 100  # step records of one task
LARGEST_ORDER = 200 * 1024  # bytes
MEMORY = (128, 10_240)  # MB, the limits of Lambda
MOST_ORDERS = 1e12  # per month: 380,000 per second
YEARS = 3_660.0  # days

Bounds = tuple[str, float, float, float, str]


def check(wanted: Wanted) -> Wanted:
    """Return `wanted` unchanged. Raises ConsoleError for the first value that is out of range."""
    for option, value, least, most, unit in _bounds(wanted):
        if not isfinite(value) or not least <= value <= most:
            raise ConsoleError(
                f"{option} must be from {_spoken(least)} to {_spoken(most)}{unit}, "
                f"not {_spoken(value)}.",
                USAGE,
            )
    if wanted.steps * wanted.result_bytes > RESULTS_LIMIT:
        raise ConsoleError(
            f"{wanted.steps} results of {_spoken(wanted.result_bytes)} bytes exceed the "
            f"{_spoken(RESULTS_LIMIT)} bytes that a task may hold. Store the results "
            "elsewhere, and their keys in the task.",
            USAGE,
        )
    if wanted.architecture not in ("x86_64", "arm64"):
        raise ConsoleError("--architecture must be x86_64 or arm64.", USAGE)
    if wanted.profile not in PROFILES:
        raise ConsoleError("--profile must be lean, standard or full.", USAGE)
    return wanted


def _bounds(wanted: Wanted) -> list[Bounds]:
    order = wanted.order_bytes if wanted.order_bytes is not None else 1
    return [
        ("--orders-per-month", wanted.orders_per_month, 0, MOST_ORDERS, ""),
        ("--steps", wanted.steps, 1, MOST_STEPS, ""),
        ("--batch", wanted.batch, 1, 10, " messages per invocation"),
        ("--statuses", wanted.statuses, 0, 100, ""),
        ("--order-bytes", order, 1, LARGEST_ORDER, " bytes"),
        ("--result-bytes", wanted.result_bytes, 0, LARGEST_RESULT, " bytes"),
        ("--service-ms", wanted.service_ms, 0, 900_000, " ms"),
        ("--memory", wanted.memory, *MEMORY, " MB"),
        ("--task-days", wanted.task_days, 0, YEARS, " days"),
        ("--search-fields", wanted.search_fields, 0, MOST_SEARCH_FIELDS, ""),
        ("--order-days", wanted.order_days, 0, YEARS, " days"),
        ("--log-days", wanted.log_days, 0, YEARS, " days"),
        ("--interval", wanted.interval, 5, 3_600, " seconds"),
    ]


def _spoken(value: float) -> str:
    """Format a whole number with separators between thousands and without a decimal point."""
    return f"{value:,.0f}" if isfinite(value) and value == round(value) else f"{value:g}"
