"""Compares the current counts of orders with the recorded ones; it does not compare times."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from benchmarks.cost.counting import Everything
from roundsman_console.facts.cost.figures import Figures, OrderUse, Role

SLACK = {"log_bytes": 0.01}
"""The allowed relative difference of a figure; a few bytes in a log line are not relevant."""

RISEN = (
    "Is that what was meant? Then say in the change what each order gets for it, and record it: "
    "python -m benchmarks record. Else make it less; the page on cost has the price of each unit."
)


def complaints(recorded: Mapping[str, OrderUse], now: Mapping[str, OrderUse]) -> Iterator[str]:
    """Yield a sentence for each figure that differs from the recorded one.

    Decreases are reported too, because a later increase would otherwise stay unnoticed.
    """
    for name, order in now.items():
        if name not in recorded:
            yield f"{name}: was never recorded"
            continue
        yield from _differ(name, asdict(recorded[name]), asdict(order), "an order")


def call_complaints(recorded: Mapping[str, Role], now: Mapping[str, Role]) -> Iterator[str]:
    """Yield a sentence for each role that calls AWS more or less often than recorded.

    Calls take three quarters of the functions' processor time.
    """
    for role, counts in now.items():
        yield from _differ(role, _calls(recorded[role]), _calls(counts), "a message")


def standing_complaints(recorded: Figures, now: Everything) -> Iterator[str]:
    """Yield a sentence for each fixed cost that differs: idle passes, alarms, metrics, polls."""
    for profile, found in now.standing.items():
        before, after = asdict(recorded.standing[profile]), asdict(found)
        passes = before.pop("one_pass"), after.pop("one_pass")
        yield from _differ(f"the supervisor, {profile}", *passes, "a pass that finds nothing")
        yield from _differ(f"the stack, {profile}", before, after, "in all")


def _calls(role: Role) -> dict[str, float]:
    return {
        "DynamoDB calls": role.dynamodb_calls,
        "DynamoDB calls in a batch of ten": role.dynamodb_calls_of_ten,
        "SQS calls": role.sqs_calls,
    }


def _differ(
    name: str, before: Mapping[str, float], now: Mapping[str, float], each: str
) -> Iterator[str]:
    for figure, amount in now.items():
        if abs(amount - before[figure]) > SLACK.get(figure, 0) * before[figure]:
            yield (
                f"{name}: {_spoken(amount)} {figure.replace('_', ' ')} {each}, "
                f"recorded are {_spoken(before[figure])}"
            )


def _spoken(amount: float) -> str:
    return f"{amount:,.1f}".removesuffix(".0")
