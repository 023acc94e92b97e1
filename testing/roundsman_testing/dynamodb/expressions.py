"""DynamoDB's expressions: parsed once, evaluated on items.

The language is the part of DynamoDB's that the stores and the console use: comparisons, BETWEEN,
AND, OR, NOT, `attribute_exists`, `attribute_not_exists`, `attribute_type` and `begins_with`; SET
(with `+`, `-` and `if_not_exists`), REMOVE, and ADD of a number; the paths of a projection;
placeholders for names (`#n`) and values (`:v`).
Anything else raises NotImplementedError. Reserved words are not refused.

A parsed expression knows its placeholders, so that a caller can refuse those that are missing or
unused, as DynamoDB does.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

Item: TypeAlias = dict[str, "Value"]
Path: TypeAlias = tuple[str | int, ...]
"""A path of an expression: names, or placeholders of names, and indexes of lists."""


class InvalidExpression(Exception):
    """DynamoDB refuses the expression, or what it would do to the item."""


@dataclass(frozen=True, slots=True)
class Given:
    """The names and values that a request gives for placeholders."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: "Mapping[str, Value]" = field(default_factory=dict)

    def path(self, path: Path) -> Path:
        """Return the path with the names of its placeholders."""
        if not self.names:
            return path
        return tuple([self.names.get(str(part), part) for part in path])


Operand: TypeAlias = "Callable[[Item, Given], Value | None]"
Condition: TypeAlias = "Callable[[Item, Given], bool]"
NewValue: TypeAlias = "Callable[[Item, Given], Value | None]"
"""Returns the new value at the path that an update changes; None if it is removed."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What every expression has: the placeholders that it names."""

    names: frozenset[str]
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConditionExpression(Parsed):
    """A condition, or a key condition."""

    holds: Condition
    """Whether an item fulfils it; an item that does not exist is empty."""
    equals: tuple[tuple[Path, str], ...]
    """The paths that it compares with a value by `=`, and the placeholder of the value."""


@dataclass(frozen=True, slots=True)
class ProjectionExpression(Parsed):
    """What a read returns of an item."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class UpdateExpression(Parsed):
    """An update."""

    changes: tuple[tuple[Path, NewValue], ...]

    def paths(self, given: Given) -> list[Path]:
        """Return the paths that it changes. Raises InvalidExpression if two of them overlap."""
        paths = [given.path(path) for path, _ in self.changes]
        for number, path in enumerate(paths):
            for other in paths[number + 1 :]:
                shorter = min(len(path), len(other))
                if path[:shorter] == other[:shorter]:
                    raise InvalidExpression("Two document paths overlap with each other")
        return paths

    def updated(self, item: Item, paths: Sequence[Path], keys: Sequence[str], given: Given) -> Item:
        """Return the item after the update.

        `keys` are the attributes of the table's key. Raises InvalidExpression if one of them is
        changed, or if a value cannot be computed. Every value is computed from the item as it was.
        """
        for path in paths:
            if path[0] in keys:
                raise InvalidExpression(f"Cannot update attribute {path[0]}. It is part of the key")
        values = [value(item, given) for _, value in self.changes]
        found = dict(item)
        for path, value in zip(paths, values, strict=True):
            _put(found, path, value)
        return found


def value_at(item: Item, path: Path) -> "Value | None":
    """Return the value at a path; None if there is none."""
    found: Value | None = item.get(str(path[0]))
    for part in path[1:]:
        if found is None:
            return None
        if isinstance(part, int):
            inside = found.get("L")
            found = inside[part] if inside is not None and part < len(inside) else None
        else:
            found = found.get("M", {}).get(part)
    return found


def _put(item: Item, path: Path, value: "Value | None") -> None:
    """Set or remove the value at a path of an item, of which only the first level is a copy."""
    name = str(path[0])
    if len(path) == 1:
        if value is None:
            item.pop(name, None)
        else:
            item[name] = value
        return
    inside = item.get(name)
    if inside is None:
        raise InvalidExpression(PATH_IS_MISSING)
    item[name] = _with(inside, path[1:], value)


def _with(container: "Value", path: Path, value: "Value | None") -> "Value":
    """Return a copy of a map or list with a value set or removed."""
    part = path[0]
    if isinstance(part, int):
        if "L" not in container:
            raise InvalidExpression(PATH_IS_MISSING)
        parts = list(container["L"])
        if len(path) > 1:
            if part >= len(parts):
                raise InvalidExpression(PATH_IS_MISSING)
            parts[part] = _with(parts[part], path[1:], value)
        elif value is None:
            del parts[part : part + 1]
        else:
            parts[part : part + 1] = [value]
        return {"L": parts}
    if "M" not in container:
        raise InvalidExpression(PATH_IS_MISSING)
    members = dict(container["M"])
    if len(path) > 1:
        if part not in members:
            raise InvalidExpression(PATH_IS_MISSING)
        members[part] = _with(members[part], path[1:], value)
    elif value is None:
        members.pop(part, None)
    else:
        members[part] = value
    return {"M": members}


PATH_IS_MISSING = "The document path provided in the update expression is invalid for update"

# --- values --------------------------------------------------------------------------------------


def number_of(text: str) -> int | Decimal:
    """Return a number of DynamoDB; two that are equal compare equal."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def kind_of(value: "Value") -> str:
    """Return the type of a value: `S`, `N`, `M`, ..."""
    return next(iter(value))


def are_equal(one: "Value", other: "Value") -> bool:
    """Whether two values have one type and are equal; numbers are compared as numbers."""
    if one.keys() != other.keys():
        return False
    if "N" in one:
        return number_of(one["N"]) == number_of(other["N"])
    if "M" in one:
        mine, yours = one["M"], other["M"]
        return mine.keys() == yours.keys() and all(are_equal(mine[key], yours[key]) for key in mine)
    if "L" in one:
        pairs = zip(one["L"], other["L"], strict=False)
        return len(one["L"]) == len(other["L"]) and all(are_equal(a, b) for a, b in pairs)
    return one == other


def ordered(value: "Value") -> tuple[str, str | bytes | int | Decimal] | None:
    """Return what values of one type are ordered by; None if the type has no order."""
    if "N" in value:
        return "N", number_of(value["N"])
    if "S" in value:
        return "S", value["S"].encode()  # the order of UTF-8 bytes
    if "B" in value:
        return "B", bytes(value["B"])
    return None


def _compare(operator: str, one: "Value | None", other: "Value | None") -> bool:
    if operator == "<>":
        return one is None or other is None or not are_equal(one, other)
    if one is None or other is None:
        return False
    if operator == "=":
        return are_equal(one, other)
    left, right = ordered(one), ordered(other)
    if left is None or right is None or left[0] != right[0]:
        return False
    return _IN_ORDER[operator](left[1], right[1])


_IN_ORDER: Mapping[str, Callable[..., bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

# --- parsing -------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*([#:]?[A-Za-z_0-9][\w-]*|<>|<=|>=|[=<>()\[\],.+-])")


@lru_cache(maxsize=2_000)
def condition_of(text: str) -> ConditionExpression:
    """Parse a condition or key condition. Raises NotImplementedError."""
    parser = _Parser(text)
    holds = parser.any_of()
    parser.end()
    names, values = frozenset(parser.names), frozenset(parser.values)
    return ConditionExpression(names, values, holds, tuple(parser.equals))


@lru_cache(maxsize=2_000)
def update_of(text: str) -> UpdateExpression:
    """Parse an update. Raises NotImplementedError."""
    parser = _Parser(text)
    changes = tuple(parser.changes())
    parser.end()
    return UpdateExpression(frozenset(parser.names), frozenset(parser.values), changes)


@lru_cache(maxsize=100)
def projection_of(text: str) -> ProjectionExpression:
    """Parse a projection. Raises NotImplementedError."""
    parser = _Parser(text)
    paths = tuple(parser.paths())
    parser.end()
    return ProjectionExpression(frozenset(parser.names), frozenset(parser.values), paths)


class _Parser:
    """Parses one expression by recursive descent."""

    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        self.values: set[str] = set()
        self.equals: list[tuple[Path, str]] = []
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0

    # - tokens -

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _next(self, *wanted: str) -> str:
        token = self._peek()
        if not token or (wanted and token.upper() not in wanted):
            raise NotImplementedError(f"{token or 'the end'} is not known here: {self._text}")
        self._at += 1
        return token

    def _takes(self, *words: str) -> bool:
        if self._peek().upper() in words:
            self._at += 1
            return True
        return False

    def end(self) -> None:
        """Refuse what follows the expression."""
        if self._peek():
            raise NotImplementedError(f"{self._peek()} is not known here: {self._text}")

    # - conditions -

    def any_of(self) -> Condition:
        """Parse conditions that are joined by OR."""
        parts = [self._all_of()]
        while self._takes("OR"):
            parts.append(self._all_of())
        if len(parts) == 1:
            return parts[0]
        return lambda item, given: any(part(item, given) for part in parts)

    def _all_of(self) -> Condition:
        parts = [self._negated()]
        while self._takes("AND"):
            parts.append(self._negated())
        if len(parts) == 1:
            return parts[0]
        return lambda item, given: all(part(item, given) for part in parts)

    def _negated(self) -> Condition:
        if self._takes("NOT"):
            inner = self._negated()
            return lambda item, given: not inner(item, given)
        if self._peek() == "(":
            self._next("(")
            inner = self.any_of()
            self._next(")")
            return inner
        return self._condition()

    def _condition(self) -> Condition:
        if self._peek(1) == "(":
            return self._function(self._next(*map(str.upper, _FUNCTIONS)).lower())
        began = self._at
        one = self._operand()
        if self._takes("BETWEEN"):
            least = self._operand()
            self._next("AND")
            most = self._operand()
            return lambda item, given: (
                _compare(">=", one(item, given), least(item, given))
                and _compare("<=", one(item, given), most(item, given))
            )
        operator = self._next("=", "<>", "<", "<=", ">", ">=")
        if operator == "=" and self._peek().startswith(":"):
            value = self._peek()
            self.equals.append(
                (_Parser("".join(self._tokens[began : self._at - 1]))._path(), value)
            )
        other = self._operand()
        return lambda item, given: _compare(operator, one(item, given), other(item, given))

    def _function(self, name: str) -> Condition:
        self._next("(")
        path = self._path()
        if name in ("attribute_exists", "attribute_not_exists"):
            self._next(")")
            wanted = name == "attribute_exists"
            return lambda item, given: (value_at(item, given.path(path)) is not None) is wanted
        self._next(",")
        other = self._operand()
        self._next(")")
        test = _FUNCTIONS[name]

        def holds(item: Item, given: Given) -> bool:
            found, compared = value_at(item, given.path(path)), other(item, given)
            return found is not None and compared is not None and test(found, compared)

        return holds

    def _operand(self) -> Operand:
        if self._peek().startswith(":"):
            name = self._next()
            self.values.add(name)
            return lambda _, given: given.values[name]
        path = self._path()
        return lambda item, given: value_at(item, given.path(path))

    def _path(self) -> Path:
        parts: list[str | int] = [self._name()]
        while self._peek() in (".", "["):
            if self._next() == ".":
                parts.append(self._name())
            else:
                parts.append(int(self._next()))
                self._next("]")
        return tuple(parts)

    def _name(self) -> str:
        name = self._next()
        if not re.fullmatch(r"#?[A-Za-z_0-9][\w-]*", name):
            raise NotImplementedError(f"{name} is no name: {self._text}")
        if name.startswith("#"):
            self.names.add(name)
        return name

    def paths(self) -> Iterator[Path]:
        """Parse paths that are separated by commas."""
        yield self._path()
        while self._takes(","):
            yield self._path()

    # - updates -

    def changes(self) -> Iterator[tuple[Path, NewValue]]:
        """Parse the clauses of an update."""
        while self._peek():
            clause = self._next("SET", "REMOVE", "ADD").upper()
            parse = {"SET": self._set, "REMOVE": self._remove, "ADD": self._add}[clause]
            yield parse()
            while self._takes(","):
                yield parse()

    def _set(self) -> tuple[Path, NewValue]:
        path = self._path()
        self._next("=")
        value = self._sum()

        def new(item: Item, given: Given) -> "Value":
            found = value(item, given)
            if found is None:
                raise InvalidExpression(ATTRIBUTE_IS_MISSING)
            return found

        return path, new

    def _sum(self) -> Operand:
        one = self._term()
        if self._peek() not in ("+", "-"):
            return one
        sign = 1 if self._next() == "+" else -1
        other = self._term()
        return lambda item, given: _added(one(item, given), other(item, given), sign)

    def _term(self) -> Operand:
        if self._peek().lower() != "if_not_exists" or self._peek(1) != "(":
            return self._operand()
        self._next()
        self._next("(")
        path = self._path()
        self._next(",")
        other = self._sum()
        self._next(")")
        return lambda item, given: value_at(item, given.path(path)) or other(item, given)

    def _remove(self) -> tuple[Path, NewValue]:
        return self._path(), lambda *_: None

    def _add(self) -> tuple[Path, NewValue]:
        path, more = self._path(), self._operand()

        def new(item: Item, given: Given) -> "Value":
            found, added = value_at(item, given.path(path)), more(item, given)
            if added is None or "N" not in added:
                raise InvalidExpression("Incorrect operand type for operator or function; ADD")
            return added if found is None else _added(found, added, 1)

        return path, new


def _tokens(text: str) -> Iterator[str]:
    at, text = 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotImplementedError(f"{text[at:].split()[0]} is not known here: {text}")
        yield found[1]
        at = found.end()


ATTRIBUTE_IS_MISSING = (
    "The provided expression refers to an attribute that does not exist in the item"
)
WRONG_OPERAND = "An operand in the update expression has an incorrect data type"


def _added(one: "Value | None", other: "Value | None", sign: int) -> "Value":
    if one is None or other is None:
        raise InvalidExpression(ATTRIBUTE_IS_MISSING)
    if "N" not in one or "N" not in other:
        raise InvalidExpression(WRONG_OPERAND)
    return {"N": str(number_of(one["N"]) + sign * number_of(other["N"]))}


def _has_type(found: "Value", kind: "Value") -> bool:
    return kind_of(found) == kind.get("S")


def _begins_with(found: "Value", start: "Value") -> bool:
    if "S" in found and "S" in start:
        return found["S"].startswith(start["S"])
    return "B" in found and "B" in start and bytes(found["B"]).startswith(bytes(start["B"]))


_FUNCTIONS: "Mapping[str, Callable[[Value, Value], bool]]" = {
    "attribute_exists": lambda *_: True,
    "attribute_not_exists": lambda *_: True,
    "attribute_type": _has_type,
    "begins_with": _begins_with,
}
