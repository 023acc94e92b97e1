"""The `when` of a step: a JMESPath expression over the order and the results so far."""

from collections.abc import Mapping
from functools import lru_cache

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from roundsman.errors import DefinitionError
from roundsman.values import Json


def compile_condition(where: str, expression: object) -> None:
    """Refuse an expression that JMESPath cannot read. Raises DefinitionError."""
    if not isinstance(expression, str):
        raise DefinitionError(f"{where}: when must be a JMESPath expression, not {expression!r}")
    try:
        _compiled(expression)
    except JMESPathError as error:
        first_line = str(error).splitlines()[0]
        raise DefinitionError(
            f"{where}: when is not JMESPath: {expression!r}: {first_line}"
        ) from error


def holds(expression: str, order: Json, results: Mapping[str, Json]) -> bool:
    """Whether the expression is true of `{"input": order, "results": results}`.

    JMESPath's own truth: null, false, and empty strings, lists and objects are false.
    Raises ValueError where the expression fails on this data (a function given a wrong type).
    """
    try:
        found: object = _compiled(expression).search({"input": order, "results": dict(results)})
    except JMESPathError as error:
        raise ValueError(f"when {expression!r} cannot be evaluated: {error}") from error
    # A number is true in JMESPath, zero included.
    return found is not None and found is not False and found not in ("", [], {})


@lru_cache(maxsize=256)
def _compiled(expression: str) -> ParsedResult:
    return jmespath.compile(expression)
