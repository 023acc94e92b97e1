"""Generates the mutants of a module from its syntax tree, and runs one of them in this process.

A mutant is one node of one function replaced by another (`tools.mutants.operators`), or an element
of a constant table left out. No file is written: the mutated function is compiled in memory, and
its code takes the place of the original code. Every reference to the function sees it, since the
function object stays the same. So a mutant ends with its process, and a mutated source never exists
on disk.

Not mutated: annotations, type variables, docstrings, default arguments, decorators, the sentences
in f-strings, the arguments of `raise`, and module constants that are plain numbers or texts.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tools.mutants.operators import OPERATORS, Place

TABLES = (ast.Dict, ast.Set, ast.Tuple, ast.List, ast.Call)
"""A module constant of one of these kinds is mutated."""


@dataclass(frozen=True, slots=True, order=True)
class MutantId:
    """What identifies a mutant. It does not depend on the layout of the source."""

    function: str
    """The qualified name within the package: `claims.claim`, `step_values.StepValues.of`."""
    operator: str
    before: str
    """The changed expression, as `ast.unparse` writes it."""
    after: str
    """What is there instead; empty if the expression is left out."""
    occurrence: int = 1
    """Counts the mutants that are alike otherwise, from 1."""

    def __str__(self) -> str:
        number = f" (occurrence {self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.function}: {self.operator}: {self.before} -> {self.after}{number}"


@dataclass(frozen=True, slots=True)
class Generated:
    """One mutant of a module that is imported."""

    id: MutantId
    module: ModuleType = field(compare=False, repr=False)
    lines: range = field(compare=False)
    """The lines of the statement that changes; of a compound statement, those of its head."""
    _compiled: tuple[ast.stmt, ...] = field(compare=False, repr=False)
    """The statements of the module to be compiled: the function, the class, or all tables."""
    _place: Place = field(compare=False, repr=False)
    _new: ast.AST | None = field(compare=False, repr=False)

    @property
    def is_table(self) -> bool:
        """Whether the mutant changes a constant of the module, and not a function."""
        return not isinstance(self._compiled[0], ast.FunctionDef | ast.ClassDef)

    def activate(self) -> None:
        """Replace the original by the mutant in this process, for ever."""
        with _replaced(self._place, self._new):
            tree = ast.fix_missing_locations(ast.Module([*self._compiled], []))
            code = compile(tree, str(self.module.__file__), "exec")
        if self.is_table:
            _rebind(self.module, code)
        else:
            _replace_code(self.module, self.id.function.split(".", 1)[1], code)


def mutants_of(module: ModuleType) -> list[Generated]:
    """Return all mutants of the module, in the order of its source."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    package = module.__name__.rpartition(".")[0]
    prefix = module.__name__.removeprefix(f"{package}.")
    seen: Counter[tuple[str, str, str, str]] = Counter()
    found: list[Generated] = []
    for name, compiled, root, returns in _roots(tree):
        for place, lines in _places(root, returns, vars(module)):
            node = _get(place)
            for operator in OPERATORS:
                for new in operator(node, place):
                    before = f"{_text(node)}: {_value(place)}" if _value(place) else _text(node)
                    key = (f"{prefix}.{name}", operator.__name__, before, _text(new))
                    if key[2] == key[3]:
                        continue
                    seen[key] += 1
                    made = MutantId(*key, seen[key])
                    found.append(Generated(made, module, lines, compiled, place, new))
    return found


def _roots(tree: ast.Module) -> Iterator[tuple[str, tuple[ast.stmt, ...], ast.stmt, str]]:
    """Yield what is mutated: its name, the statements to compile, itself, its return annotation.

    These are the functions, the methods, and the constants that are tables. All tables of a module
    are compiled together, because one may be made from another.
    """
    tables = {name: top for top in tree.body if (name := _table_name(top))}
    for top in tree.body:
        if isinstance(top, ast.FunctionDef):
            yield top.name, (top,), top, _returns(top)
        elif isinstance(top, ast.ClassDef):
            for inner in top.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{top.name}.{inner.name}", (top,), inner, _returns(inner)
    for name, table in tables.items():
        yield name, tuple(tables.values()), table, ""


def _table_name(statement: ast.stmt) -> str:
    """Return the name of a constant that is a table; empty for any other statement."""
    match statement:
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec"))):
            return ""
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name if isinstance(value, TABLES) else ""
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return name if isinstance(value, TABLES) else ""
        case _:
            return ""


def _returns(function: ast.FunctionDef) -> str:
    return ast.unparse(function.returns) if function.returns else ""


SKIPPED_FIELDS = frozenset({"annotation", "returns", "args", "decorator_list", "exc", "cause"})
"""Fields whose nodes are not mutated, except the `args` of a call."""


def _places(
    root: ast.stmt, returns: str, names: Mapping[str, object]
) -> Iterator[tuple[Place, range]]:
    """Yield the places of all nodes in a statement that may be mutated, with their lines."""

    def walk(node: ast.AST, lines: range) -> Iterator[tuple[Place, range]]:
        for name, value in ast.iter_fields(node):
            if name in SKIPPED_FIELDS and not isinstance(node, ast.Call):
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                    continue
                if _is_docstring(node, child, index):
                    continue
                held = _head(child) if isinstance(child, ast.stmt | ast.match_case) else lines
                yield Place(node, name, index, returns, names), held
                yield from walk(child, held)

    yield from walk(root, _head(root))


def _is_docstring(parent: ast.AST, node: ast.AST, index: int | None) -> bool:
    return isinstance(parent, ast.FunctionDef) and index == 0 and _is_text(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _head(node: ast.stmt | ast.match_case) -> range:
    """Return the lines of a statement or a case, without those of the statements inside it."""
    if isinstance(node, ast.match_case):
        first, last = node.pattern.lineno, node.body[-1].lineno
    else:
        first, last = node.lineno, node.end_lineno or node.lineno
    inner = [
        child.pattern.lineno if isinstance(child, ast.match_case) else child.lineno
        for child in ast.walk(node)
        if child is not node and isinstance(child, ast.stmt | ast.match_case)
    ]
    return range(first, min([last + 1, *(max(at, first + 1) for at in inner)]))


def _get(place: Place) -> ast.AST:
    value = getattr(place.parent, place.field)
    found = value if place.index is None else value[place.index]
    if not isinstance(found, ast.AST):
        raise TypeError(f"{place.field} holds no node")
    return found


@contextmanager
def _replaced(place: Place, new: ast.AST | None) -> Iterator[None]:
    """Put a node into a place inside the context; None leaves the place out of its list."""
    if place.index is None:
        old = _get(place)
        setattr(place.parent, place.field, new)
        try:
            yield
        finally:
            setattr(place.parent, place.field, old)
        return
    fields = ["keys", "values"] if isinstance(place.parent, ast.Dict) and new is None else []
    lists = [getattr(place.parent, name) for name in fields or [place.field]]
    kept = [[*each] for each in lists]
    for each in lists:
        each[place.index : place.index + 1] = [] if new is None else [new]
    try:
        yield
    finally:
        for each, items in zip(lists, kept, strict=True):
            each[:] = items


def _value(place: Place) -> str:
    """Return the value of a dict's key in words; empty for any other place."""
    if isinstance(place.parent, ast.Dict) and place.field == "keys" and place.index is not None:
        return _text(place.parent.values[place.index])
    return ""


def _text(node: ast.AST | None) -> str:
    if node is None:
        return ""
    if isinstance(node, ast.Match):
        return "match " + " | ".join(ast.unparse(each.pattern) for each in node.cases)
    return " ".join(ast.unparse(node).split())


def _replace_code(module: ModuleType, name: str, code: CodeType) -> None:
    """Give a function or a method of the module, by its qualified name, its code in `code`."""
    owner: object = None
    found: object = module
    for part in name.split("."):
        owner, found = found, vars(found)[part]
    function = found.fget if isinstance(found, property) else found
    if not isinstance(function, FunctionType):
        raise TypeError(f"{name} of {module.__name__} is no plain function")
    new = _code_of(code, name)
    if new.co_freevars == function.__code__.co_freevars:
        function.__code__ = new
    else:  # a call of super() was left out: the code can only be that of another function
        other = FunctionType(new, function.__globals__, argdefs=function.__defaults__)
        other.__kwdefaults__ = function.__kwdefaults__
        setattr(owner, function.__name__, other)


def _code_of(code: CodeType, name: str) -> CodeType:
    """Return the code of the function with this qualified name."""
    for part in name.split("."):
        code = next(
            each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part
        )
    return code


def _rebind(module: ModuleType, code: CodeType) -> None:
    """Execute the module's tables again, and let all modules that name one name the new one."""
    before = dict(vars(module))
    exec(code, vars(module))  # noqa: S102 - the project's own source with one node changed
    for name, value in vars(module).items():
        old = before.get(name)
        if old is value or name.startswith("__"):
            continue
        for other in list(sys.modules.values()):
            for known in [key for key, held in _names_of(other) if held is old]:
                setattr(other, known, value)


def _names_of(module: object) -> list[tuple[str, object]]:
    return list(vars(module).items()) if isinstance(module, ModuleType) else []
