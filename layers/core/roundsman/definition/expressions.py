"""Evaluates the expressions of steps: JMESPath over the order and the results.

They are `when` and `for_each` of a step, and `until` of a sleep.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.functions import Functions, signature
from jmespath.parser import ParsedResult
from jmespath.visitor import TreeInterpreter

from roundsman.errors import DefinitionError
from roundsman.model.checks import shown
from roundsman.model.instants import read_instant
from roundsman.model.json import Json

if TYPE_CHECKING:
    from jmespath.visitor import _TreeNode

Node: TypeAlias = Mapping[str, object]

WHOLE_DATA = frozenset({"current", "identity"})
"""Nodes whose value is that over which they are evaluated."""

OF_A_PART = frozenset(
    {
        "subexpression",
        "index_expression",
        "projection",
        "value_projection",
        "filter_projection",
        "flatten",
        "pipe",
    }
)
"""Node types in which only the first operand is evaluated over the whole data; the other operands
are evaluated over the value of the first one."""

VARIABLES = frozenset({"input", "results", "came"})

NOTHING: Mapping[str, Json] = {}

ORDERINGS = frozenset({"lt", "lte", "gt", "gte"})

JSON_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("a boolean", (bool,)),
    ("a number", (int, float)),
    ("a string", (str,)),
    ("an object", (dict,)),
    ("a list", (list,)),
)

# Functions whose value is the list that they are given, one of its items, or made of each item.
SAME_LIST = frozenset({"reverse", "sort", "sort_by"})
ONE_ITEM = frozenset({"max", "max_by", "min", "min_by"})
BY_ITEM = frozenset({"map", "max_by", "min_by", "sort_by"})


class NotThere(ValueError):
    """An expression reads something that no order can have. The message completes "when ..."."""


class Shape:
    """What is known of a value that an expression reads. Of this one, nothing is."""

    def field(self, _name: str) -> "Shape":
        """The shape of a field of the value. Raises NotThere if it cannot have the field."""
        return ANYTHING

    def item(self) -> "Shape":
        """The shape of the items of the value. Raises NotThere if it cannot be a list."""
        return ANYTHING

    def is_list(self) -> bool | None:
        """Whether the value is a list; None if that is not known."""
        return None

    def is_text(self) -> bool | None:
        """Whether the value is a text; None if that is not known."""
        return None


ANYTHING = Shape()


@dataclass(frozen=True)
class _ListOf(Shape):
    inner: Shape

    def field(self, name: str) -> Shape:
        raise NotThere(f"reads {name!r} of a list; put [] after the list, to read it of each item")

    def item(self) -> Shape:
        return self.inner

    def is_list(self) -> bool:
        return True


class _Truth(Shape):
    def field(self, name: str) -> Shape:
        raise NotThere(
            f"reads {name!r} of true or false, which has no fields; write !(a.b), since !a.b is "
            "(!a).b"
        )

    def item(self) -> Shape:
        raise NotThere("reads the items of true or false")

    def is_list(self) -> bool:
        return False


class _BySteps(Shape):
    def __init__(self) -> None:
        self.read = set[str]()

    def field(self, name: str) -> Shape:
        self.read.add(name)
        return ANYTHING


@dataclass(frozen=True)
class _Data(Shape):
    """The whole data: the variables."""

    order: Shape
    results: Shape = ANYTHING
    came: Shape = ANYTHING

    def field(self, name: str) -> Shape:
        if name not in VARIABLES:
            raise NotThere(
                f"reads {name!r}, which does not exist; there are input, results and came"
            )
        return {"input": self.order, "results": self.results, "came": self.came}[name]


class NotAList(ValueError):
    """A `for_each` expression returned a value that is not a list.

    The message names the type of the value and never contains the data.
    """


def compile_condition(where: str, expression: object) -> None:
    """Check an expression of a step, like `compile_expression`, and that it reads what there is.

    Raises DefinitionError, also for anything but `input`, `results` and `came`.
    """
    try:
        shape_of(compile_expression(where, expression))
    except NotThere as error:
        raise DefinitionError(f"{where} {expression!r} {error}") from error


def compile_expression(where: str, expression: object) -> str:
    """Return the expression, which JMESPath can parse and evaluate; `where` names it in messages.

    Raises DefinitionError for a syntax error, an unknown function, or a wrong number of arguments.
    JMESPath itself looks up functions only when it evaluates an expression; an unknown function
    would then fail every order instead of the import.
    """
    if not isinstance(expression, str):
        raise DefinitionError(f"{where} must be a JMESPath expression, not {shown(expression)}")
    refused = f"{where} is not valid JMESPath: {expression!r}"
    try:
        parsed: Node = _compiled(expression).parsed
    except (JMESPathError, RecursionError) as error:
        first_line = (str(error).splitlines() or ["it cannot be parsed"])[0]
        raise DefinitionError(f"{refused}: {first_line}") from error
    for problem in _misuses(parsed):
        raise DefinitionError(f"{refused}: {problem}")
    return expression


def is_true(
    expression: str,
    order: Json,
    results: Mapping[str, Json],
    came: Mapping[str, Json] = NOTHING,
) -> bool:
    """Whether the expression is true for `{"input": order, "results": results, "came": came}`.

    The truth rules are those of JMESPath: null, false, and empty strings, lists and objects are
    false. Text that is a JSON number without an exponent is an amount: it is compared by value
    with numbers and other amounts. Raises ValueError if the evaluation fails on this data, for
    example if a function gets an argument of a wrong type. The message names types and never
    contains the data.
    """
    found = _evaluate("when", expression, order, results, came)
    # In JMESPath every number is true, also zero.
    return found is not None and found is not False and found not in ("", [], {})


def evaluate_list(
    expression: str,
    order: Json,
    results: Mapping[str, Json],
    came: Mapping[str, Json] = NOTHING,
) -> list[Json]:
    """Return the list that the expression selects from the same data as that of `is_true`.

    Raises NotAList if the value is not a list, and ValueError like `is_true`.
    """
    found = _evaluate("for_each", expression, order, results, came)
    if not isinstance(found, list):
        given = type_in_words(found)
        raise NotAList(f"for_each {expression!r} must give a list, not {given}")
    return found


def evaluate_instant(
    expression: str,
    order: Json,
    results: Mapping[str, Json],
    came: Mapping[str, Json] = NOTHING,
) -> int:
    """Return the instant (epoch ms) that the expression selects, a text in ISO 8601.

    Raises ValueError if the value is not such a text, and like `is_true`. The message never
    contains the data.
    """
    found = _evaluate("until", expression, order, results, came)
    if not isinstance(found, str):
        raise ValueError(f"until {expression!r} must give an instant, not {type_in_words(found)}")
    try:
        return read_instant(found)
    except ValueError as problem:
        raise ValueError(f"until {expression!r} gives a text that {problem}") from problem


def evaluate(what: str, expression: str, data: Json) -> Json:
    """Return what the expression selects from any JSON value; `what` names it in messages.

    Raises ValueError like `is_true`.
    """
    failed = f"{what} {expression!r} cannot be evaluated"
    try:
        found: Json = _Interpreter(_OPTIONS).visit(_compiled(expression).parsed, data)
    except JMESPathTypeError as error:
        wanted, given = " or ".join(map(str, error.expected_types)), error.actual_type
        why = f"{error.function_name}() takes {wanted}, not {given}"
        raise ValueError(f"{failed}: {why}") from error
    except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        # The functions of the library raise these for data that they do not expect.
        why = f"{type(error).__name__} on this order"
        raise ValueError(f"{failed}: {why}") from error
    return found


def type_in_words(value: object) -> str:
    """Return what kind of JSON value this is, such as `a string`."""
    return next((name for name, kinds in JSON_TYPES if isinstance(value, kinds)), "nothing")


def _evaluate(
    what: str,
    expression: str,
    order: Json,
    results: Mapping[str, Json],
    came: Mapping[str, Json],
) -> Json:
    data: Json = {"input": order, "results": dict(results), "came": dict(came)}
    return evaluate(what, expression, data)


class _Interpreter(TreeInterpreter):
    """A JMESPath interpreter that compares amounts by value.

    Orders contain amounts as decimal strings. The library compares those as text, and raises
    TypeError for a string and a number.
    """

    def visit_comparator(self, node: "_TreeNode", value: object) -> object:
        operator = str(node["value"])
        left, right = (self.visit(operand, value) for operand in node["children"])
        amounts = _amounts([left, right])
        if amounts is not None:
            left, right = amounts
        elif operator in ORDERINGS and not (isinstance(left, str) and isinstance(right, str)):
            return None  # neither amounts nor texts: they have no order
        outcome: object = self.COMPARATOR_FUNC[operator](left, right)
        return outcome


class _AmountFunctions(Functions):
    """The functions of JMESPath; those that compare values compare amounts by value."""

    @signature({"types": ["array-number", "array-string"]})
    def _func_max(self, array: list[object]) -> object:
        return _chosen(max, array, array)

    @signature({"types": ["array-number", "array-string"]})
    def _func_min(self, array: list[object]) -> object:
        return _chosen(min, array, array)

    @signature({"types": ["array-string", "array-number"]})
    def _func_sort(self, array: list[object]) -> list[object]:
        return _ordered(array, array)

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_max_by(self, array: list[object], by: object) -> object:
        return _chosen(max, array, self._keys("max_by", array, by))

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_min_by(self, array: list[object], by: object) -> object:
        return _chosen(min, array, self._keys("min_by", array, by))

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_sort_by(self, array: list[object], by: object) -> list[object]:
        return _ordered(array, self._keys("sort_by", array, by))

    @signature({"types": ["array", "string"]}, {"types": []})
    def _func_contains(self, subject: list[object] | str, search: object) -> bool:
        amount = _amount(search)
        if amount is None or isinstance(subject, str):
            return search in subject
        return any(_amount(each) == amount for each in subject)

    def _keys(self, function: str, array: Sequence[object], by: object) -> list[object]:
        """The texts or numbers by which the items are compared. Raises JMESPathTypeError."""
        key = self._create_key_func(  # type: ignore[attr-defined]  # the stubs lack it
            by, ["number", "string"], function
        )
        return [key(item) for item in array]


_OPTIONS = jmespath.Options(custom_functions=_AmountFunctions())


def _ordered(values: Sequence[object], keys: Sequence[object]) -> list[object]:
    """The values in the order of their keys."""
    compared = _comparable(keys)
    return [values[place] for place in sorted(range(len(values)), key=compared.__getitem__)]


def _chosen(choose: Callable[..., int], values: Sequence[object], keys: Sequence[object]) -> object:
    """The first value with the greatest or least key, as `choose` is max or min; None without."""
    compared = _comparable(keys)
    return values[choose(range(len(values)), key=compared.__getitem__)] if values else None


def _comparable(keys: Sequence[object]) -> Sequence[Any]:
    """The keys by value if all of them are amounts, else as they are."""
    return _amounts(keys) or keys


_AMOUNT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""The text of a JSON number without an exponent."""


def _amounts(values: Sequence[object]) -> list[Decimal] | None:
    """The amounts that the values are; None if any of them is none."""
    found = [_amount(value) for value in values]
    known = [amount for amount in found if amount is not None]
    return known if len(known) == len(found) else None


def _amount(value: object) -> Decimal | None:
    if isinstance(value, str):
        return Decimal(value) if _AMOUNT.fullmatch(value) else None
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal(str(value))  # str gives the shortest text of a float: 100.1 stays 100.1
    return None


def paths_read(expression: str) -> frozenset[tuple[str, ...]]:
    """Return the paths of field names that the expression reads: `("input", "total")`.

    Finds only paths that the text of the expression contains and that begin at the whole data. What
    is read within a list or an object that the expression selects is not found. The empty path is
    the whole data, as in `@` or `values(@)`.
    """
    return frozenset(_paths_read(_compiled(expression).parsed))


def shape_of(expression: str, order: Shape = ANYTHING) -> Shape:
    """Return what is known of the expression's value, if this is known of the order.

    Raises NotThere if the expression reads something that no order can have.
    """
    return _shape(_compiled(expression).parsed, _Data(order))


def steps_read(expression: str) -> frozenset[str]:
    """Return the names of the steps whose results the expression reads, such as `results.quote`,
    or of which it reads whether an answer came, such as `came.quote`.

    Raises NotThere like `shape_of`.
    """
    steps = _BySteps()
    _shape(_compiled(expression).parsed, _Data(ANYTHING, steps, steps))
    return frozenset(steps.read)


def read_without_default(expression: str) -> frozenset[str]:
    """Return the names of the steps whose results the expression reads where no other value is
    taken instead of a missing one: not in `results.quote || ...` nor in `not_null(results.quote)`.

    Raises NotThere like `shape_of`.
    """
    steps = _BySteps()
    _shape(_without_defaults(_compiled(expression).parsed), _Data(ANYTHING, steps))
    return frozenset(steps.read)


def _without_defaults(node: Node) -> Node:
    """The node without what is read where another value is taken instead of a missing one."""
    kind = node.get("type")
    if kind == "or_expression" or (kind == "function_expression" and node["value"] == "not_null"):
        return {"type": "literal", "value": None, "children": []}
    children = [
        _without_defaults(child) if isinstance(child, Mapping) else child
        for child in _children(node)
    ]
    return {**node, "children": children}


def answers_asked_for(expression: str) -> frozenset[str]:
    """Return the names of the steps of which it reads whether an answer came: `came.quote`.

    Raises NotThere like `shape_of`.
    """
    came = _BySteps()
    _shape(_compiled(expression).parsed, _Data(ANYTHING, came=came))
    return frozenset(came.read)


_LEAVES: Mapping[str, Callable[[Node, Shape], Shape]] = {
    "field": lambda node, of: of.field(str(node["value"])),
    "current": lambda _, of: of,
    "identity": lambda _, of: of,
    "index": lambda _, of: of.item(),
    "slice": lambda _, of: _ListOf(of.item()),
    "expref": lambda *_: ANYTHING,  # what it is evaluated over is known in a function only
}
_CHAINS = frozenset({"subexpression", "index_expression", "pipe"})
_PROJECTIONS = frozenset({"projection", "value_projection", "filter_projection", "flatten"})
_OTHERS: Mapping[str, Shape] = {
    "multi_select_list": _ListOf(ANYTHING),
    "not_expression": _Truth(),
    "comparator": _Truth(),
}


def _shape(node: Node, of: Shape) -> Shape:
    """The shape of a node's value, evaluated over a value of the shape `of`."""
    kind = str(node.get("type"))
    children = [child for child in _children(node) if isinstance(child, Mapping)]
    if kind in _LEAVES:
        return _LEAVES[kind](node, of)
    if kind in _CHAINS:
        return reduce(lambda shape, child: _shape(child, shape), children, of)
    if kind in _PROJECTIONS:
        return _projected(kind, children, of)
    if kind == "function_expression":
        return _function_shape(str(node["value"]), children, of)
    for child in children:
        _shape(child, of)
    return _OTHERS.get(kind, ANYTHING)


def _projected(kind: str, children: Sequence[Node], of: Shape) -> Shape:
    """The shape of a list that is made of the items, or of the fields, of the first operand."""
    first, *rest = children
    left = _shape(first, of)
    if kind == "flatten":
        item = left.item()
        nested = item.is_list()
        return _ListOf(item if nested is False else item.item() if nested else ANYTHING)
    item = ANYTHING if kind == "value_projection" else left.item()
    for condition in rest[1:]:
        _shape(condition, item)
    return _ListOf(_shape(rest[0], item))


def _function_shape(name: str, arguments: Sequence[Node], of: Shape) -> Shape:
    plain = [_shape(each, of) for each in arguments if each.get("type") != "expref"]
    inner = ANYTHING
    for each in arguments:
        if each.get("type") == "expref":
            over = plain[0].item() if name in BY_ITEM and plain else ANYTHING
            [inner] = (_shape(part, over) for part in _children(each) if isinstance(part, Mapping))
    if name == "map":
        return _ListOf(inner)
    if plain and name in SAME_LIST:
        return plain[0]
    return plain[0].item() if plain and name in ONE_ITEM else ANYTHING


def _paths_read(node: Node) -> Iterator[tuple[str, ...]]:
    """Yield each path of field names that is evaluated over the whole data."""
    kind = node.get("type")
    if kind in WHOLE_DATA:
        yield ()
        return
    if path := _path(node):
        yield path
        return
    children = [child for child in _children(node) if isinstance(child, Mapping)]
    if kind != "expref":
        for child in children[:1] if kind in OF_A_PART else children:
            yield from _paths_read(child)


def _path(node: Node) -> tuple[str, ...]:
    """The field names at the beginning of `input.lines[0].sku`; empty if it begins otherwise.

    These are `input` and `lines`: what is read within a list is not found.
    """
    return tuple(_leading(node)[0])


def _leading(node: Node) -> tuple[list[str], bool]:
    """The field names at the beginning of a node, and whether the node is nothing but these."""
    kind = node.get("type")
    if kind == "field":
        return [str(node["value"])], True
    if kind in WHOLE_DATA:  # `@.input`
        return [], True
    children = [child for child in _children(node) if isinstance(child, Mapping)]
    if kind != "subexpression":
        return (_leading(children[0])[0] if kind in OF_A_PART else []), False
    found = list[str]()
    for child in children:
        names, alone = _leading(child)
        found += names
        if not alone:
            return found, False
    return found, True


def _misuses(node: Node) -> Iterator[str]:
    """Yield a message for each unknown function and each wrong number of arguments."""
    children = [child for child in _children(node) if isinstance(child, Mapping)]
    if node.get("type") == "function_expression":
        name = str(node["value"])
        if name not in Functions.FUNCTION_TABLE:
            yield f"there is no function {name}()"
        else:
            signature = Functions.FUNCTION_TABLE[name]["signature"]
            variadic = bool(signature) and bool(signature[-1].get("variadic"))
            least, given = len(signature), len(children)
            if given < least or (given > least and not variadic):
                yield f"{name}() takes {least} argument(s), not {given}"
    for child in children:
        yield from _misuses(child)


def _children(node: Node) -> list[object]:
    found = node.get("children")
    return found if isinstance(found, list) else []


@lru_cache(maxsize=256)
def _compiled(expression: str) -> ParsedResult:
    return jmespath.compile(expression)
