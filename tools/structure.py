"""Measures the project's structure, to show how easy it is to navigate.

    python -m tools.structure          # a table on stdout
    python -m tools.structure --json

It prints the number of modules of each package, the import levels and cycles, the class names that
are defined twice, the lines by area, and the files that run while one reply of an agent is handled,
from its queue to the next request.
"""

import argparse
import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

import grimp

if TYPE_CHECKING:
    from roundsman.testing.stack import Context

ROOT = Path(__file__).parents[1]
PACKAGES = ("roundsman", "roundsman_console")
SOURCES = {"roundsman": ROOT / "layers/core", "roundsman_console": ROOT / "console"}
AREAS = {
    "engine (layers/core without inspector and testing)": (
        "layers/core/**/*.py",
        "!layers/core/roundsman/inspector",
        "!layers/core/roundsman/testing",
    ),
    "inspector": ("layers/core/roundsman/inspector/**/*.py",),
    "test kit": ("layers/core/roundsman/testing/**/*.py",),
    "application (workflows, functions)": ("layers/workflows/**/*.py", "functions/**/*.py"),
    "console": ("console/**/*.py",),
    "tests": ("tests/**/*.py",),
    "tools and benchmarks": ("tools/**/*.py", "benchmarks/**/*.py"),
    "docs": ("docs/**/*.md", "README.md", "CONTRIBUTING.md"),
}
SERVICES = ("InventoryUrl", "PaymentUrl", "ShippingUrl", "MailUrl")
ORDER = "events/good.json"
FRAGMENT = 60
"""Modules with fewer lines are listed, because they may be fragments of another module."""


Figures: TypeAlias = Mapping[str, Mapping[str, object] | Sequence[object]]


def figures() -> Figures:
    """Return all figures, by name."""
    graph = _graph()
    return {
        "modules": _modules(graph),
        "importLevels": {package: len(_levels(graph, package)) for package in PACKAGES},
        "cycles": [sorted(cycle) for cycle in _cycles(graph)],
        "classNamesTwice": _names_twice(),
        "modulesUnder60Lines": _fragments(),
        "lines": {area: _lines(patterns) for area, patterns in AREAS.items()},
        "filesCrossedByAReply": sorted(_reply_path()),
    }


def _graph() -> grimp.ImportGraph:
    sys.path[:0] = [str(path) for path in SOURCES.values()]
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)


def _modules(graph: grimp.ImportGraph) -> dict[str, int]:
    """Return the number of modules directly in each package, without its `__init__`."""
    packages = {module.rpartition(".")[0] for module in graph.modules}
    counted = Counter(m.rpartition(".")[0] for m in graph.modules if m not in packages)
    return dict(sorted(counted.items()))


def _levels(graph: grimp.ImportGraph, package: str) -> list[set[str]]:
    """Return the modules of a package by level; each module imports only from lower levels.

    The modules of a cycle are on one level.
    """
    group = {m: frozenset(cycle) for cycle in _cycles(graph) for m in cycle}
    nodes = {m: group.get(m, frozenset({m})) for m in graph.modules if _is_in(m, package)}
    imports = {
        node: {
            nodes[other]
            for module in node
            for other in graph.find_modules_directly_imported_by(module)
            if other in nodes and nodes[other] != node
        }
        for node in nodes.values()
    }
    levels: list[set[str]] = []
    placed: set[frozenset[str]] = set()
    while len(placed) < len(imports):
        ready = {node for node, needs in imports.items() if node not in placed and needs <= placed}
        levels.append({module for node in ready for module in node})
        placed |= ready
    return levels


def _cycles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Return the strongly connected components of two or more modules (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph.find_modules_directly_imported_by(module)):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            component = set(stack[stack.index(module) :])
            del stack[stack.index(module) :]
            if len(component) > 1:
                found.append(component)

    for module in sorted(graph.modules):
        if module not in index:
            visit(module)
    return found


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _names_twice() -> dict[str, list[str]]:
    """Return the public class names that several modules of the engine and the console define."""
    found = defaultdict(list)
    for path in _files(("layers/core/**/*.py", "console/**/*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def _fragments() -> list[str]:
    paths = _files(("layers/core/**/*.py", "console/**/*.py"))
    return [
        f"{path.relative_to(ROOT)} ({lines})"
        for path in paths
        if path.name != "__init__.py" and (lines := _count(path)) < FRAGMENT
    ]


def _reply_path() -> set[str]:
    """Return the engine's files with a function that runs while a reply is handled.

    It is the first reply of the example order on the in-memory stack, from the SQS event to the
    next request.
    """
    from roundsman.testing.remote_services import RemoteServices
    from roundsman.testing.stack import Clock, deployed

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
    without = [ROOT / pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for pattern in patterns:
        if pattern.startswith("!"):
            continue
        for path in sorted(ROOT.glob(pattern)):
            if not any(path.is_relative_to(each) for each in without):
                yield path


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
