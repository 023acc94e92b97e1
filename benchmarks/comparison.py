"""Compares the latest results with those of the release before (results/before.json).

Counts and dollars are equal on every machine. Times are comparable only if both files were measured
on the same machine, which did nothing else; the table says which machines and days they are.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from benchmarks.report import Report, Setting, Table, amount
from roundsman.model.json import Json

RESULTS = Path(__file__).parent / "results"
LATEST, BEFORE = RESULTS / "latest.json", RESULTS / "before.json"

Results: TypeAlias = Mapping[str, Json]

FIGURES: Mapping[str, tuple[str, ...]] = {
    "write units, an order of four steps": ("order", "write_units"),
    "read units": ("order", "read_units"),
    "SQS requests": ("order", "sqs_requests"),
    "SQS requests in batches of five": ("order", "batch_5", "sqs_requests"),
    "log bytes": ("order", "log_bytes"),
    "write units, 50 steps side by side": ("growth", "w1x50r40", "write_units"),
    "50 steps, in batches of ten": ("growth", "w1x50r40b10", "write_units"),
    "write units, 100 steps in a row": ("growth", "w100x1r40", "write_units"),
    "USD a million, unbatched": ("usd_per_million", "unbatched"),
    "USD a million, batch of five": ("usd_per_million", "batch of 5"),
    "USD a million, batch of ten": ("usd_per_million", "batch of 10"),
    "USD a month without orders": ("usd_standing_per_month",),
    "cold start of submission, of the baseline": ("cold_start", "ratio", "SubmissionFunction"),
    "cold start of the scheduler": ("cold_start", "ratio", "SchedulerFunction"),
    "cold start of the slowest agent": ("cold_start", "ratio", "ShippingFunction"),
    "us a decision, ten steps": ("machine_by_steps", "10", "decision_us"),
    "calls of functions, an order": ("profile", "function_calls"),
    "the same in batches of ten": ("profile", "function_calls_of_ten"),
    "processor ms an order, our functions": ("throughput", "processor_ms", "functions"),
    "orders a second, 20 in flight": ("throughput", "orders_per_second"),
    "ms an order, one at a time, p50": ("throughput", "latency_ms", "idle", "p50"),
    "ms an order, 20 in flight, p50": ("throughput", "latency_ms", "20 in flight", "p50"),
}
"""The figures that are compared: what a person calls it, and where the results have it."""


def measure(_setting: Setting) -> Report:
    """Return the comparison. Without before.json it says so and has no table."""
    if not BEFORE.is_file():
        return Report([], {}, [f"There is no {BEFORE.name} to compare with."])
    return compared(_read(BEFORE), _read(LATEST))


def compared(before: Results, latest: Results) -> Report:
    """Return each figure of FIGURES before and now, and the ratio of the two.

    A figure that only one of the results has is shown without a ratio.
    """
    rows = [
        [name, *_cells(_figure(before, path), _figure(latest, path))]
        for name, path in FIGURES.items()
    ]
    table = Table("Before and now", ["", "before", "now", "ratio"], rows)
    return Report([table], {}, [f"Before: {_origin(before)}. Now: {_origin(latest)}."])


def _cells(before: float | None, now: float | None) -> list[str]:
    ratio = f"{now / before:.2f}" if before and now is not None else ""
    return ["" if before is None else amount(before), "" if now is None else amount(now), ratio]


def _figure(results: Results, path: tuple[str, ...]) -> float | None:
    found: Json = {**results}
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def _origin(results: Results) -> str:
    return f"{results.get('measured_on')}, {results.get('machine')}"


def _read(file: Path) -> Results:
    found: Json = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found if isinstance(found, Mapping) else {}
