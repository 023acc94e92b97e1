"""Compares what orders ask for now with what was recorded. Counts only, never times."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from roundsman_console.cost.figures import Order

SLACK = {"log_bytes": 0.01}
"""Of what may differ by a little: how much of it. A few bytes of a log line are no news."""

RISEN = (
    "Is that what was meant? Then say in the change what each order gets for it, and record it: "
    "python -m benchmarks record. Else make it less; docs/cost.md says what each unit costs."
)


def complaints(recorded: Mapping[str, Order], now: Mapping[str, Order]) -> Iterator[str]:
    """A sentence for each figure that differs. What fell is told too: else it may rise unseen."""
    for name, order in now.items():
        if name not in recorded:
            yield f"{name}: was never recorded"
            continue
        before = asdict(recorded[name])
        for figure, amount in asdict(order).items():
            if abs(amount - before[figure]) > SLACK.get(figure, 0) * before[figure]:
                yield (
                    f"{name}: {_spoken(amount)} {figure.replace('_', ' ')} an order, "
                    f"recorded are {_spoken(before[figure])}"
                )


def _spoken(amount: float) -> str:
    return f"{amount:,.1f}".removesuffix(".0")
