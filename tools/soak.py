"""Long random runs in memory: random workflows, orders, schedules, faults and operator actions.

    python -m tools.soak --minutes 10            # run stories for 10 minutes
    python -m tools.soak --orders 100000         # run stories until 100,000 orders were sent
    python -m tools.soak --seed 4711 --stories 1 # repeat one story with the printed seed

Each story is a simulated world that is derived from one seed; the next story uses the next number.
All invariants are checked after every event, and at the end every order must have ended. If a
check fails, the exit code is 1, and the seed and the trace of the first few stories are printed.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

from tools.soak_account import Account
from tools.soak_stories import Story

IN_ONE_GO = 20
"""The number of stories that a worker process runs before it reports."""

TRACES_SHOWN = 3
SAYS_EVERY = 10.0


@dataclass
class Found:
    """The report of a worker process, or the sum of several reports."""

    account: Account = field(default_factory=Account)
    broken: list[tuple[int, str]] = field(default_factory=list)
    """The seed and the error of each story that failed."""


@dataclass(frozen=True)
class Limits:
    """The limits of a run, which stops at the first one that it reaches; None for no limit."""

    seconds: float | None = None
    stories: int | None = None
    orders: int | None = None


def run_stories(seeds: Iterable[int]) -> Found:
    """Run one story for each seed. The account does not include stories that fail."""
    found = Found()
    for seed in seeds:
        try:
            found.account.add(Story(seed).run())
        except Exception as broken:  # noqa: BLE001  # any exception is a failed story
            found.broken.append((seed, f"{type(broken).__name__}: {broken}"))
    return found


def collect_rarely() -> None:
    """Let Python look for garbage in cycles a tenth as often: a story leaves little of it."""
    gc.set_threshold(*(10 * often for often in gc.get_threshold()))


def soak(first_seed: int, limits: Limits, workers: int) -> Iterator[Found]:
    """Run stories in parallel until a limit is reached, and yield the sum of all reports so far."""
    began, total = time.monotonic(), Found()
    seeds = islice(count(first_seed), limits.stories)
    with ProcessPoolExecutor(workers, initializer=collect_rarely) as pool:
        running: set[Future[Found]] = set()
        while True:
            enough = _enough(total, limits, time.monotonic() - began)
            while not enough and len(running) < 2 * workers:
                batch = list(islice(seeds, IN_ONE_GO))
                if not batch:
                    break
                running.add(pool.submit(run_stories, batch))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                found = each.result()
                total.account.add(found.account)
                total.broken += found.broken
            yield total


def _enough(total: Found, limits: Limits, passed: float) -> bool:
    timed_out = limits.seconds is not None and passed >= limits.seconds
    return timed_out or (limits.orders is not None and total.account.orders >= limits.orders)


def summary(total: Found, seconds: float) -> str:
    """Return the totals as text for people; `seconds` is the duration of the run."""
    account = total.account
    faults = sum(account.faults.values())
    return "\n".join(
        [
            f"{account.orders} orders in {account.stories} stories, {seconds:.0f} s; "
            f"{account.behind} stories have functions that are behind",
            f"{account.events} events, {account.calls} calls, {account.commands} commands",
            f"{faults} faults of calls, {account.troubles} troubles at services, "
            f"{account.redriven} dead letters put back",
            *(f"  {count:>8} {kind}" for kind, count in account.faults.most_common()),
            "ends: " + ", ".join(f"{n} {state}" for state, n in account.ends.most_common()),
            account.not_covered_sentence(),
            f"{len(total.broken)} violations",
        ]
    )


def report_of(total: Found) -> dict[str, int | str]:
    """Return the numbers of orders, stories, faults and violations, and what no story met."""
    account = total.account
    return {
        "orders": account.orders,
        "stories": account.stories,
        "faults": sum(account.faults.values()),
        "violations": len(total.broken),
        "not covered": account.not_covered_sentence(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, print the progress every 10 s, and return the exit code."""
    asked = _parser().parse_args(arguments)
    limits = Limits(
        seconds=None if asked.minutes is None else asked.minutes * 60,
        stories=asked.stories,
        orders=asked.orders,
    )
    if limits == Limits():
        limits = Limits(seconds=60)
    began = printed = time.monotonic()
    total, shown = Found(), 0
    for total in soak(asked.seed, limits, asked.workers):
        for seed, why in total.broken[shown:TRACES_SHOWN]:
            print(f"story {seed} broke: {why}\n", file=sys.stderr, flush=True)
        shown = len(total.broken)
        if time.monotonic() - printed >= SAYS_EVERY:
            printed = time.monotonic()
            account = total.account
            print(
                f"{printed - began:.0f} s: {account.orders} orders, {len(total.broken)} violations",
                file=sys.stderr,
                flush=True,
            )
    seconds = time.monotonic() - began
    if asked.report is not None:
        asked.report.write_text(json.dumps(report_of(total)))
    if asked.json:
        seeds = [seed for seed, _ in total.broken]
        found = {**vars(total.account), "not_covered": total.account.not_covered()}
        print(json.dumps({**found, "seconds": round(seconds), "broken": seeds}))
    else:
        print(summary(total, seconds))
        if total.broken:
            print("their seeds:", *sorted(seed for seed, _ in total.broken))
    return 1 if total.broken or not total.account.orders else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--minutes", type=float, help="stop after so long (default: 1)")
    parser.add_argument("--orders", type=int, help="stop after this number of orders")
    parser.add_argument("--stories", type=int, help="stop after this number of stories")
    parser.add_argument("--seed", type=int, default=0, help="of the first story (default: 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--json", action="store_true", help="the totals as JSON")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="the counts and the kinds that no story met, as JSON",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
