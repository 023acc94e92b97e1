"""The mutation operators: each yields the nodes that may stand in place of a node of a syntax tree.

An operator is a function of a node and its place, and is named by what it changes. The nodes that
it yields are new; the node itself is never changed. Reasons and other texts with spaces are left
alone, because they are sentences for people and decide nothing.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import EnumType


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands in its tree."""

    parent: ast.AST
    field: str
    """The field of the parent that holds the node."""
    index: int | None
    """The index of the node if the field is a list."""
    returns: str
    """The return annotation of the function around the node; empty if there is none."""
    names: Mapping[str, object]
    """The global names of the module around the node."""


Operator = Callable[[ast.AST, Place], Iterator[ast.AST | None]]
"""Yields the nodes that may replace a node; None if it may be left out of its list."""

COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
EMPTY = {"str": "''", "list": "[]", "tuple": "()"}
"""The value that means nothing, for each return annotation without its parameters."""


def condition(_node: ast.AST, place: Place) -> Iterator[ast.AST]:
    """Force a condition to be true, and to be false."""
    tested = place.field == "test" and isinstance(place.parent, ast.If | ast.While | ast.IfExp)
    filters = place.field == "ifs" and isinstance(place.parent, ast.comprehension)
    if tested or filters or (place.field == "guard" and isinstance(place.parent, ast.match_case)):
        if not isinstance(place.parent, ast.While):
            yield ast.Constant(True)
        yield ast.Constant(False)


def operand(node: ast.AST, _place: Place) -> Iterator[ast.AST]:
    """Leave out one operand of `and`, `or`, an arithmetic operator or a union of types."""
    match node:
        case ast.BoolOp(values=[first, second]):
            yield first
            yield second
        case ast.BoolOp():
            for number in range(len(node.values)):
                yield _without(node, "values", number)
        case ast.BinOp() if not _is_text(node.left) and not _is_text(node.right):
            yield node.left
            yield node.right
        case _:
            pass


def negation(node: ast.AST, _place: Place) -> Iterator[ast.AST]:
    """Leave out a `not`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def comparison(node: ast.AST, _place: Place) -> Iterator[ast.AST]:
    """Move the bound of a comparison by one, or negate an equality, an identity or an `in`."""
    if isinstance(node, ast.Compare):
        for number, operation in enumerate(node.ops):
            ops = [*node.ops]
            ops[number] = COMPARISONS[type(operation)]()
            yield _with(node, ops=ops)


def constant(node: ast.AST, place: Place) -> Iterator[ast.AST]:
    """Add one to a number, flip a boolean, or change a text that is a name.

    The default in `x or 0` stays: it is less than every instant, as 1 is.
    """
    if isinstance(place.parent, ast.BoolOp):
        return
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if value.isidentifier():
            yield ast.Constant(f"not_{value}")
        case _:
            pass


def member(node: ast.AST, place: Place) -> Iterator[ast.AST]:
    """Take the next member of an enumeration."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            enumeration = place.names.get(name)
            if isinstance(enumeration, EnumType) and attribute in enumeration.__members__:
                names = list(enumeration.__members__)
                following = names[(names.index(attribute) + 1) % len(names)]
                yield _with(node, attr=following)
        case _:
            pass


def call(node: ast.AST, _place: Place) -> Iterator[ast.AST]:
    """Swap min and max, any and all; leave out an argument of min or max, or a sort."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in OPPOSITES:
            yield _with(node, func=ast.Name(OPPOSITES[name], ast.Load()))
            if len(node.args) == 2:
                yield from node.args
            elif len(node.args) > 2:
                for number in range(len(node.args)):
                    yield _without(node, "args", number)
        case ast.Call(func=ast.Name(id="sorted" | "reversed"), args=[argument, *_]):
            yield argument
        case _:
            pass


def keyword(node: ast.AST, _place: Place) -> Iterator[ast.AST | None]:
    """Leave out a keyword argument of a call, or pass None."""
    if isinstance(node, ast.keyword):
        yield None
        if node.arg and not _is_text(node.value):
            yield ast.keyword(node.arg, ast.Constant(None))


def element(_node: ast.AST, place: Place) -> Iterator[ast.AST | None]:
    """Leave out an element of a set, a list, a tuple or a dict."""
    match place.parent:
        case ast.Set(elts=elements) if len(elements) == 1:
            pass
        case ast.Set() | ast.List() | ast.Tuple(ctx=ast.Load()) if place.field == "elts":
            yield None
        case ast.Dict() if place.field == "keys":
            yield None
        case _:
            pass


def case(node: ast.AST, _place: Place) -> Iterator[ast.AST]:
    """Leave out a case of a match."""
    if isinstance(node, ast.Match) and len(node.cases) > 1:
        for number in range(len(node.cases)):
            yield _without(node, "cases", number)


def statement(node: ast.AST, _place: Place) -> Iterator[ast.AST]:
    """Leave out a call, a deletion, or an assignment to something other than a new name."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Continue():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case _:
            pass


def returned(node: ast.AST, place: Place) -> Iterator[ast.AST]:
    """Return True, False, None or an empty value, by the function's return annotation."""
    if not isinstance(place.parent, ast.Return) or isinstance(node, ast.Constant):
        return
    kind = place.returns.partition("[")[0]
    if place.returns == "bool":
        yield ast.Constant(True)
        yield ast.Constant(False)
    elif place.returns.endswith("| None"):
        yield ast.Constant(None)
    elif kind in EMPTY and ast.unparse(node) != EMPTY[kind]:
        yield ast.parse(EMPTY[kind], mode="eval").body


OPERATORS: tuple[Operator, ...] = (
    condition,
    operand,
    negation,
    comparison,
    constant,
    member,
    call,
    keyword,
    element,
    case,
    statement,
    returned,
)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of the node with other fields."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _without(node: ast.AST, field: str, number: int) -> ast.AST:
    """Return a copy of the node without one item of a field that is a list."""
    kept = [*getattr(node, field)]
    del kept[number]
    return _with(node, **{field: kept})
