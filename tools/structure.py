"""Measures the project's structure, to show how easy it is to navigate.

    python -m tools.structure          # a table on stdout
    python -m tools.structure --json

It prints the lines by area, and the files that run while one reply of an agent is handled, from its
queue to the next request. Which package imports which is checked by `make lint`.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

if TYPE_CHECKING:
    from roundsman_testing.stack import Context

ROOT = Path(__file__).parents[1]
AREAS = {
    "runtime (layers/core)": ("layers/core/**/*.py",),
    "test kit": ("testing/**/*.py",),
    "application (workflows, functions)": ("layers/workflows/**/*.py", "functions/**/*.py"),
    "console": ("console/**/*.py",),
    "tests": ("tests/**/*.py",),
    "tools and benchmarks": ("tools/**/*.py", "benchmarks/**/*.py"),
    "docs": ("docs/**/*.md", "README.md", "CONTRIBUTING.md"),
}
SERVICES = ("InventoryUrl", "PaymentUrl", "ShippingUrl", "MailUrl")
ORDER = "events/good.json"

Figures: TypeAlias = Mapping[str, Mapping[str, object] | Sequence[object]]


def figures() -> Figures:
    """Return all figures, by name."""
    return {
        "lines": {area: _lines(patterns) for area, patterns in AREAS.items()},
        "filesCrossedByAReply": sorted(_reply_path()),
    }


def _reply_path() -> set[str]:
    """Return the engine's files with a function that runs while a reply is handled.

    It is the first reply of the example order on the in-memory stack, from the SQS event to the
    next request.
    """
    from roundsman_testing.remote_services import RemoteServices
    from roundsman_testing.stack import Clock, deployed

    clock, crossed = Clock(), set[str]()
    core = str(ROOT / "layers/core/roundsman")

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(core):
            crossed.add(str(Path(code.co_filename).relative_to(ROOT)))

    with RemoteServices(clock=clock.at_the_services) as services:
        parameters = dict.fromkeys(SERVICES, services.url)
        with deployed(ROOT / "template.yaml", parameters, services=services, clock=clock) as stack:
            invoke = stack.invoke

            def invoked(function: str, event: dict[str, object], *rest: "Context | None") -> object:
                if (
                    function != "SchedulerFunction"
                    or 'ReplyQueue"' not in json.dumps(event)
                    or crossed
                ):
                    return invoke(function, event, *rest)
                sys.setprofile(note)
                try:
                    return invoke(function, event, *rest)
                finally:
                    sys.setprofile(None)

            with patch.object(stack, "invoke", invoked):
                stack.submit(json.loads((ROOT / ORDER).read_text(encoding="utf-8")))
                stack.run()
    return {path for path in crossed if "/testing/" not in path}


def _lines(patterns: Sequence[str]) -> int:
    return sum(map(_count, _files(patterns)))


def _files(patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(ROOT.glob(pattern))


def _count(path: Path) -> int:
    return len(re.findall("\n", path.read_text(encoding="utf-8")))


def main(arguments: list[str] | None = None) -> int:
    """Print the figures and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    asked = parser.parse_args(arguments)
    found = figures()
    print(json.dumps(found, indent=2) if asked.json else as_text(found))
    return 0


def as_text(found: Figures) -> str:
    """Return the figures as text for people, each with its entries below."""
    lines: list[str] = []
    for name, value in found.items():
        entries = value.items() if isinstance(value, Mapping) else enumerate(value, 1)
        lines.append(f"{name}: {len(value)}")
        lines += [f"  {key}: {entry}" for key, entry in entries]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
