"""The `when` and `for_each` of a step: JMESPath expressions over the order and the results."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.functions import Functions
from jmespath.parser import ParsedResult
from jmespath.visitor import TreeInterpreter

from roundsman.errors import DefinitionError
from roundsman.model.json import Json

if TYPE_CHECKING:
    from jmespath.visitor import _TreeNode

Node: TypeAlias = Mapping[str, object]

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
"""Expressions whose operands but the first are evaluated over what the first one gave."""

ORDERINGS = frozenset({"lt", "lte", "gt", "gte"})

JSON_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("a boolean", (bool,)),
    ("a number", (int, float)),
    ("a string", (str,)),
    ("an object", (dict,)),
)


class NotAList(ValueError):
    """A `for_each` gave something else; says what, but never the data."""


def compile_condition(where: str, expression: object) -> None:
    """Refuse an expression that JMESPath cannot read or could never evaluate; `where` names it.

    Raises DefinitionError. JMESPath itself looks up functions only when it evaluates; a name
    that does not exist would then fail every order instead of the import.
    """
    if not isinstance(expression, str):
        raise DefinitionError(f"{where} must be a JMESPath expression, not {expression!r}")
    refused = f"{where} is not JMESPath: {expression!r}"
    try:
        parsed: Node = _compiled(expression).parsed
    except (JMESPathError, RecursionError) as error:
        first_line = (str(error).splitlines() or ["it cannot be read"])[0]
        raise DefinitionError(f"{refused}: {first_line}") from error
    for problem in _misuses(parsed):
        raise DefinitionError(f"{refused}: {problem}")


def holds(expression: str, order: Json, results: Mapping[str, Json]) -> bool:
    """Whether the expression is true of `{"input": order, "results": results}`.

    JMESPath's own truth: null, false, and empty strings, lists and objects are false. Amounts
    are decimal strings, and compare with numbers by their value: ``input.total > `100` ``.
    Raises ValueError where the expression fails on this data (a function given a wrong type);
    its sentence names types, never the data.
    """
    found = _evaluate("when", expression, order, results)
    # A number is true in JMESPath, zero included.
    return found is not None and found is not False and found not in ("", [], {})


def listed(expression: str, order: Json, results: Mapping[str, Json]) -> list[Json]:
    """The list that the expression gives over `{"input": order, "results": results}`.

    Raises NotAList where it gives something else, and ValueError as `holds` does.
    """
    found = _evaluate("for_each", expression, order, results)
    if not isinstance(found, list):
        given = next((name for name, kinds in JSON_TYPES if isinstance(found, kinds)), "nothing")
        raise NotAList(f"for_each {expression!r} must give a list, not {given}")
    return found


def _evaluate(what: str, expression: str, order: Json, results: Mapping[str, Json]) -> object:
    data = {"input": order, "results": dict(results)}
    failed = f"{what} {expression!r} cannot be evaluated"
    try:
        found: object = _Interpreter().visit(_compiled(expression).parsed, data)
    except JMESPathTypeError as error:
        wanted, given = " or ".join(map(str, error.expected_types)), error.actual_type
        why = f"{error.function_name}() takes {wanted}, not {given}"
        raise ValueError(f"{failed}: {why}") from error
    except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        # What the library's own functions raise for data that they did not foresee.
        why = f"{type(error).__name__} on this order"
        raise ValueError(f"{failed}: {why}") from error
    return found


class _Interpreter(TreeInterpreter):
    """JMESPath, but a decimal string and a number are ordered by value.

    The library raises TypeError for such a pair, while orders carry amounts as decimal strings.
    """

    def visit_comparator(self, node: "_TreeNode", value: object) -> object:
        operator = str(node["value"])
        if operator not in ORDERINGS:
            return super().visit_comparator(node, value)
        left, right = (self.visit(operand, value) for operand in node["children"])
        if isinstance(left, str) != isinstance(right, str):
            left, right = _amount(left), _amount(right)
        if not (_orders(left) and _orders(right)):
            return None
        outcome: object = self.COMPARATOR_FUNC[operator](left, right)
        return outcome


def _orders(value: object) -> bool:
    return isinstance(value, int | float | str | Decimal) and not isinstance(value, bool)


def _amount(value: object) -> Decimal | None:
    if not _orders(value):
        return None
    try:
        amount = Decimal(str(value))  # of a float, the shortest text: 100.1 is 100.1
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None


def steps_read(expression: str) -> frozenset[str]:
    """The steps whose results the expression reads, as far as its text shows."""
    return frozenset(_steps_read(_compiled(expression).parsed))


def _steps_read(node: Node) -> Iterator[str]:
    """`results.quote`, wherever `results` is a field of the whole and not of some part."""
    children = [child for child in _children(node) if isinstance(child, Mapping)]
    kind = node.get("type")
    if kind == "subexpression" and [c.get("type") for c in children[:2]] == ["field", "field"]:
        if children[0].get("value") == "results":
            yield str(children[1].get("value"))
    elif kind != "expref":
        for child in children[:1] if kind in OF_A_PART else children:
            yield from _steps_read(child)


def _misuses(node: Node) -> Iterator[str]:
    """Functions that do not exist, or that are given the wrong number of arguments."""
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
