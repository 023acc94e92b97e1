"""Measures the project's structure, to show how large it is and how easy it is to navigate.

    python -m tools.structure              # a table on stdout
    python -m tools.structure --json
    python -m tools.structure --root DIR   # another checkout, for the figures of before

Lines of code are counted without docstrings, comments and empty lines. A name is repeated if
several modules or public classes of the three packages have it.
"""

import argparse
import ast
import io
import json
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[1]
PACKAGES: Final = {
    "roundsman": "layers/core/roundsman",
    "roundsman_console": "console/roundsman_console",
    "roundsman_dev": "console/roundsman_dev",
    "roundsman_testing": "testing/roundsman_testing",
}
CODE: Final = {
    **PACKAGES,
    "application": "layers/workflows functions",
    "tests": "tests",
    "tools": "tools",
    "benchmarks": "benchmarks",
}
"""The folders of each area."""
PAGES: Final = ("docs/**/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
COUNTED: Final = frozenset({"__init__", "app", "conftest"})
"""Names of modules that every package, function or folder of tests has."""

Figures = Mapping[str, Mapping[str, object]]


def figures(root: Path) -> Figures:
    """Return the figures of a checkout, by name."""
    code = {
        area: [path for folder in folders.split() for path in sorted((root / folder).rglob("*.py"))]
        for area, folders in CODE.items()
    }
    shipped = [path for package in PACKAGES for path in code[package]]
    return {
        "modules": {area: len(paths) for area, paths in code.items()},
        "lines of code": {area: sum(map(lines_of_code, paths)) for area, paths in code.items()},
        "words of pages": {pattern: _words(root, pattern) for pattern in PAGES},
        "modules of one name": _repeated(path.stem for path in shipped),
        "public classes of one name": _repeated(n for path in shipped for n in _classes(path)),
    }


def lines_of_code(path: Path) -> int:
    """Return the number of lines with code; a text that is a statement of its own is none."""
    text = path.read_text(encoding="utf-8")
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and node.end_lineno is not None
        for line in range(node.lineno, node.end_lineno + 1)
    }
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in empty and token.type != tokenize.ENDMARKER
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(found - documented)


def _classes(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def _repeated(names: Iterator[str]) -> dict[str, int]:
    """Return the names that occur more than once, with how often, the most frequent first."""
    return {n: count for n, count in Counter(names).most_common() if count > 1 and n not in COUNTED}


def _words(root: Path, pattern: str) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in root.glob(pattern))


def main(arguments: list[str] | None = None) -> int:
    """Print the figures and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout, to count in")
    asked = parser.parse_args(arguments)
    found = figures(asked.root)
    print(json.dumps(found, indent=2) if asked.json else as_text(found))
    return 0


def as_text(found: Figures) -> str:
    """Return the figures as text for people, each with its entries below."""
    lines: list[str] = []
    for name, value in found.items():
        lines += [name, *(f"  {key}: {entry}" for key, entry in value.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
