"""`dataclass` for values that never change, at a fifth of the standard one's price at a start.

The standard library writes the source of six methods for each frozen class and compiles them
whenever a process starts: 0.6 ms a class, and bytecode on disk spares none of it. A function has
some eighty such classes, and that was half of its own cold start. Here only `__init__` is written
so. The other methods are one and the same for all classes, and do what the standard ones do; to a
type checker, `replace`, `fields`, `asdict`, `match` and `copy` these are standard dataclasses.

It is for what a function imports. What changes takes the standard decorator.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Instance

__all__ = ["dataclass"]

C = TypeVar("C")
Fields = tuple[Field[object], ...]


def value_class(
    *, frozen: bool, slots: bool = False, kw_only: bool = False
) -> Callable[[type[C]], type[C]]:
    """The standard decorator, of which values need these options. `frozen` must be True."""
    if not frozen:
        raise TypeError("a class whose instances change takes the standard library's dataclass")
    standard = standard_dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)

    def made(plain: type[C]) -> type[C]:
        found = standard(plain)
        for name, method in _methods(cast("type[Instance]", found)).items():
            if name not in vars(plain):  # what a class writes itself stays, as by the standard one
                setattr(found, name, method)
        return found

    return made


def _methods(cls: "type[Instance]") -> dict[str, object]:
    known = fields(cls)
    shown = tuple(one.name for one in known if one.repr)
    compared = tuple(one.name for one in known if one.compare)
    # Of no field at all, nothing differs.
    values = attrgetter(*compared) if compared else type

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    @recursive_repr()
    def said(self: object) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({said})"

    return {
        "__init__": _init(cls, known),
        "__eq__": equal,
        "__hash__": hashed,
        "__repr__": said,
        "__setattr__": _refuse_to_assign,
        "__delattr__": _refuse_to_delete,
        # What object gives would assign.
        "__getstate__": _state,
        "__setstate__": _set_state,
    }


def _init(cls: "type[Instance]", known: Fields) -> object:
    """Written out and compiled: it runs for every step of every record that is read."""
    names: dict[str, object] = {"__set": object.__setattr__, "__absent": MISSING}
    required: list[str] = []
    optional: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for one in known:
        name, default, value = one.name, "", one.name
        if one.default is not MISSING:
            names[f"__{name}"], default = one.default, f"=__{name}"
        elif one.default_factory is not MISSING:
            names[f"__{name}"], default = one.default_factory, "=__absent"
            value = f"__{name}() if {name} is __absent else {name}"
        positional = optional if default else required
        (by_name if one.kw_only else positional).append(name + default)
        body.append(f"__set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ["self", *required, *optional, *(["*", *by_name] if by_name else [])]
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    exec(text, names)  # noqa: S102  # of the names in a class, as by the standard library
    return names["__init__"]


def _refuse_to_assign(self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__qualname__}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r} of {type(self).__qualname__}")


def _state(self: "Instance") -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: "Instance", state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = value_class
