"""Runs the benchmarks (`make bench`) and writes their tables into pages.

python -m benchmarks                 # all parts
python -m benchmarks units cold      # only these parts; `--help` lists all
python -m benchmarks record          # write the figures for the guard in CI and `roundsman cost`
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache

from benchmarks import page
from benchmarks.cost import added, growth, memory, money, units
from benchmarks.cost.recording import record
from benchmarks.report import Report, Setting
from benchmarks.scale import console, simulated
from benchmarks.scale import measure as scale
from benchmarks.speed import cold, latency, throughput
from tools.engines import dynamodb_local
from tools.engines.runtimes import ToolError

RECORD = "record"

PARTS: Mapping[str, tuple[Callable[[Setting], Report], str]] = {
    "units": (units.measure, "DynamoDB units, SQS requests, invocations, bytes logged of an order"),
    "money": (money.measure, "USD for a million orders, here and elsewhere"),
    "memory": (memory.measure, "path and price of an order by the memory of the functions"),
    "growth": (growth.measure, "cost and size by number of steps, results and width"),
    "added": (added.measure, "what a step costs that is added at run time, by its place"),
    "cold": (cold.measure, "cold starts against a function that does nothing"),
    "simulation": (simulated.measure, "what a stack carries, simulated message by message; plots"),
    "scale": (scale.measure, "what to set from 1 to 10,000 orders a second, and what is met first"),
    "console": (console.measure, "requests and milliseconds of pages at 50,000 and 200,000 orders"),
    "latency": (latency.measure, "what an order waits for in the system, modelled, by its path"),
    "throughput": (throughput.measure, "orders a second and latency on the emulator (--orders)"),
}


def main() -> int:
    """Run the command line and return the exit code: 1 if a required tool is not available."""
    arguments = wanted()
    try:
        with _engine() as engine:
            if arguments.parts == [RECORD]:
                record(engine(), _say, times=not arguments.counts_only)
                print("Recorded in facts/cost/figures.json of the console; look at git diff.")
                return 0
            setting = Setting(engine, _say, arguments.runs, arguments.orders)
            for name in arguments.parts:
                _run(name, setting)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def wanted(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; `parts` contains all parts if none is named.

    Exits with 2 if the command line is not valid.
    """
    parser = _parser()
    found = parser.parse_args(arguments)
    if RECORD in found.parts and found.parts != [RECORD]:
        parser.error(f"{RECORD} goes alone, without other parts")
    found.parts = found.parts or list(PARTS)
    return found


def _part(name: str) -> str:
    # Not with argparse's `choices`, which would reject an empty list.
    if name in (*PARTS, RECORD):
        return name
    raise argparse.ArgumentTypeError(f"there is no part {name}; there are {', '.join(PARTS)}")


def _parser() -> argparse.ArgumentParser:
    described = "\n".join(f"  {name:<12}{what}" for name, (_, what) in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"What an order costs and how fast it goes. Parts:\n\n{described}",
        epilog="`record` alone writes what the guard in CI and `roundsman cost` go by.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", type=_part, metavar="part")
    parser.add_argument(
        "--runs", type=int, default=5, help="how often each measurement is repeated"
    )
    parser.add_argument("--orders", type=int, default=100, help="throughput: how many orders")
    parser.add_argument(
        "--counts-only", action="store_true", help="record: leave the times as they are"
    )
    return parser


@contextmanager
def _engine() -> Iterator[Callable[[], str]]:
    """Yield a function that starts DynamoDB Local on its first call and returns the endpoint."""
    with ExitStack() as until_the_end:

        @cache
        def started() -> str:
            _say("starting DynamoDB Local")
            return until_the_end.enter_context(dynamodb_local.serving())

        yield started


def _run(name: str, setting: Setting) -> None:
    """Run a part, print its tables, and write them into the pages."""
    found = PARTS[name][0](setting).text()
    print(found + "\n", flush=True)
    page.write({name: found})


def _say(doing: str) -> None:
    print(f"... {doing}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
