"""Frozen dataclasses that take a tenth of the standard library's time to import.

`dataclasses.dataclass(frozen=True)` compiles up to six methods of a class from source text where
the class is defined. This takes about a millisecond a class, and a function imports some ninety of
them: more than a quarter of its cold start. Here the standard library collects the fields, and
compiles nothing. `__init__` is compiled when the class is first used. The other methods are the
same code for all classes.

The classes work as the standard library's do with `fields`, `replace`, `asdict`, `match`, `copy`
and `pickle`, and a type checker takes them for those. tests/unit/test_lazy_dataclass.py runs the
same tests on both.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # a checker knows this one

    from _typeshed import DataclassInstance

T = TypeVar("T")


def _dataclass(
    written: type[T] | None = None,
    /,
    *,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a dataclass, with options or without, as `dataclasses.dataclass` does.

    There are no other options: a class that needs `order` uses the standard library's. A dataclass
    that inherits from one that is made here is made here too; the standard library's raises
    `TypeError`, since it does not know that its base is frozen.
    """

    def decorate(cls: type[T]) -> type[T]:
        collect = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )
        made = collect(cls)
        methods = _methods(cast("type[DataclassInstance]", made), eq=eq, frozen=frozen, slots=slots)
        for name, method in methods.items():
            if name not in cls.__dict__:
                setattr(made, name, method)
        return made

    return decorate if written is None else decorate(written)


if not TYPE_CHECKING:
    dataclass = _dataclass


class _Init:
    """An `__init__` that is compiled, and put in the place of this object, when it is looked up."""

    def __init__(self, owner: "type[DataclassInstance]") -> None:
        self._owner = owner

    def __get__(self, instance: object, _: type[object] | None = None) -> Callable[..., None]:
        compiled = _compiled_init(self._owner)
        setattr(self._owner, "__init__", compiled)  # noqa: B010  # a checker refuses to assign it
        return compiled if instance is None else MethodType(compiled, instance)


def _methods(
    cls: "type[DataclassInstance]", *, eq: bool, frozen: bool, slots: bool
) -> dict[str, object]:
    methods: dict[str, object] = {"__init__": _Init(cls), "__repr__": _repr_of(cls)}
    if eq:
        methods |= _comparisons(cls, frozen=frozen)
    if frozen:
        methods |= _protection(cls, slots=slots)
    return methods


def _repr_of(cls: "type[DataclassInstance]") -> Callable[[object], str]:
    shown = [field.name for field in dataclasses.fields(cls) if field.repr]

    def __repr__(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _comparisons(cls: "type[DataclassInstance]", *, frozen: bool) -> dict[str, object]:
    values = _values(field.name for field in dataclasses.fields(cls) if field.compare)

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: object) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _protection(cls: "type[DataclassInstance]", *, slots: bool) -> dict[str, object]:
    names = [field.name for field in dataclasses.fields(cls)]

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def __getstate__(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: object, state: list[object]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    methods: dict[str, object] = {"__setattr__": __setattr__, "__delattr__": __delattr__}
    if slots:  # copy and pickle would set the attributes one by one
        methods |= {"__getstate__": __getstate__, "__setstate__": __setstate__}
    return methods


def _values(names: Iterable[str]) -> Callable[[object], tuple[object, ...]]:
    """Return a function from an instance to the tuple of these attributes."""
    match tuple(names):
        case ():
            return lambda _: ()
        case (name,):
            return lambda instance: (getattr(instance, name),)
        case several:
            return attrgetter(*several)


def _compiled_init(cls: "type[DataclassInstance]") -> Callable[..., None]:
    """Return the `__init__` that `dataclasses.dataclass(frozen=True)` would compile for `cls`."""
    scope: dict[str, object] = {"_set": object.__setattr__, "_UNSET": object()}
    positional: list[str] = []
    keyword_only: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(cls):
        parameter = value = field.name
        if field.default is not MISSING:
            scope[f"_default_{field.name}"] = field.default
            parameter += f"=_default_{field.name}"
        elif field.default_factory is not MISSING:
            scope[f"_make_{field.name}"] = field.default_factory
            parameter += "=_UNSET"
            value = f"_make_{field.name}() if {field.name} is _UNSET else {field.name}"
        if field.init:
            (keyword_only if field.kw_only else positional).append(parameter)
            lines.append(f"_set(self, {field.name!r}, {value})")
        elif field.default is not MISSING:
            lines.append(f"_set(self, {field.name!r}, _default_{field.name})")
        elif field.default_factory is not MISSING:
            lines.append(f"_set(self, {field.name!r}, _make_{field.name}())")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ["self", *positional, *(["*"] if keyword_only else []), *keyword_only]
    source = "\n".join(
        (
            f"def define({', '.join(scope)}):",
            f"    def __init__({', '.join(parameters)}):",
            *(f"        {line}" for line in lines or ["pass"]),
            "    return __init__",
        )
    )
    defined: dict[str, Callable[..., Callable[..., None]]] = {}
    # The names in the source are those of the class's fields, from the same module.
    exec(source, sys.modules[cls.__module__].__dict__, defined)  # noqa: S102
    init = defined["define"](**scope)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls)}
    return init
