"""Records what the engine decides in the tests, and checks that it still decides the same.

    python -m tools.replay record FOLDER [TEST ...]    # outside of the repository; by default, all
    python -m tools.replay check FOLDER
    python -m tools.replay decide FOLDER               # writes what the engine decides now
    python -m tools.replay sample FOLDER               # chooses the sample of tests/replay anew

`record` runs tests and writes every question that they ask the engine, once, with its decision.
`check` asks today's engine each of them. What it decides must be the same to the byte: the actions,
the requests, the reason, the history, what is owed, the state, the due entry and the record. The
exit code is 1 if a difference is found.
"""

import argparse
import sys
import time
from itertools import takewhile
from pathlib import Path

from roundsman.model.json import canonical_json
from tools.replay import record as recording
from tools.replay.check import Findings, check
from tools.replay.folder import CASES
from tools.replay.sample import SAMPLE, write_sample

PROJECT = Path(__file__).resolve().parents[2]
SHOWN = 100
"""How many characters of an example are printed before the first that differs, and twice as many
from there on."""


def report(found: Findings) -> int:
    """Print what was found, and return the exit code."""
    for kind, count in found.counts.most_common():
        one = found.examples[kind]
        print(f"{count:9}  {kind}, as in {one.test}")
        before, now = canonical_json(one.before), canonical_json(one.now)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
        at = max(0, sum(1 for _ in same) - SHOWN)
        for name, text in (("was", before), ("is", now)):
            print(f"{name:>14}  {'...' if at else ''}{text[at : at + 3 * SHOWN]}")
    print(f"{found.cases} cases, {found.counts.total()} differences of {len(found.counts)} kinds")
    return 1 if found.counts or not found.cases else 0


def main() -> int:
    """Execute the command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.replay")
    parser.add_argument("command", choices=("record", "check", "decide", "sample"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("tests", nargs="*", help="of `record`")
    parser.add_argument("--processes", type=int, default=2, help="of `check`; by default 2")
    given = parser.parse_args()
    if given.command == "record":
        if given.folder.resolve().is_relative_to(PROJECT):
            parser.error(f"{given.folder} is in the repository: name a folder outside of it")
        return recording.record(given.folder, given.tests)
    if not [*given.folder.glob(f"{CASES}*")]:
        parser.error(f"{given.folder} has no cases: record them first")
    if given.command == "sample":
        print(f"{write_sample(given.folder)} cases are in {SAMPLE.relative_to(PROJECT)}")
        return 0
    if given.command == "decide":
        recording.decide_again(given.folder)
        return 0
    begun = time.monotonic()
    found = check(given.folder, processes=given.processes)
    code = report(found)
    print(f"{time.monotonic() - begun:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
