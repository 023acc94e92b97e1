"""Dataclasses that take a tenth of the standard library's time to import.

`dataclasses.dataclass(frozen=True)` compiles up to six methods of a class from source text where
the class is defined. This takes about a millisecond a class, and a function imports some ninety of
them: more than a quarter of its cold start. Here the standard library collects the fields, and
compiles nothing. `__init__`, `__eq__` and `__hash__` are compiled from the same text when they are
first used, which most of them never are. The other methods need no text of their own.

The classes work as the standard library's do with `fields`, `replace`, `asdict`, `match`, `copy`
and `pickle`, and a type checker takes them for those. tests/unit/test_lazy_dataclass.py runs the
same tests on both.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, FrozenInstanceError, is_dataclass
from reprlib import recursive_repr
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

    There are no other options: a class that needs `order` uses the standard library's. So does one
    with an `InitVar`, or with `hash` for a field.
    """

    def decorate(cls: type[T]) -> type[T]:
        inherits = any(is_dataclass(base) for base in cls.__mro__[1:])
        collect = dataclasses.dataclass(
            init=False,
            repr=False,
            eq=False,
            frozen=frozen and inherits,  # what the standard library asks of a frozen base's heir
            slots=slots,
            kw_only=kw_only,
        )
        made = collect(cls)
        made.__dataclass_params__.frozen = frozen  # type: ignore[attr-defined]  # for its heirs
        methods = _methods(cast("type[DataclassInstance]", made), eq=eq, frozen=frozen, slots=slots)
        for name, method in methods.items():
            if cls.__dict__.get(name) is None:  # `__hash__` is None where only `__eq__` is written
                setattr(made, name, method)
        return made

    return decorate if written is None else decorate(written)


if not TYPE_CHECKING:
    dataclass = _dataclass


class _AtFirstUse:
    """A method that is compiled, and put in the place of this object, when it is looked up."""

    def __init__(self, owner: "type[DataclassInstance]", compile_for: "_Compile") -> None:
        self._owner = owner
        self._compile_for = compile_for
        self._names = vars(sys.modules[owner.__module__])

    def __get__(self, instance: object, _: type[object] | None = None) -> Callable[..., object]:
        method = self._compile_for(self._owner, self._names)
        setattr(self._owner, method.__name__, method)
        return method if instance is None else MethodType(method, instance)


_Compile = Callable[["type[DataclassInstance]", dict[str, object]], Callable[..., object]]


class _Factory:
    """The default of a parameter whose value is made anew for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Factory()


def _methods(
    cls: "type[DataclassInstance]", *, eq: bool, frozen: bool, slots: bool
) -> dict[str, object]:
    methods: dict[str, object] = {
        "__init__": _AtFirstUse(cls, _compiled_init),
        "__repr__": _repr_of(cls),
    }
    if eq:
        methods["__eq__"] = _AtFirstUse(cls, _compiled_eq)
        methods["__hash__"] = _AtFirstUse(cls, _compiled_hash) if frozen else None
    if frozen:
        methods |= _protection(cls, slots=slots)
    return methods


def _repr_of(cls: "type[DataclassInstance]") -> Callable[[object], str]:
    shown = [field.name for field in dataclasses.fields(cls) if field.repr]

    @recursive_repr()
    def __repr__(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


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


def _compiled_init(
    cls: "type[DataclassInstance]", names: dict[str, object]
) -> Callable[..., object]:
    scope: dict[str, object] = {"_set": object.__setattr__, "_UNSET": _UNSET}
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
    parameters = [*positional, *(["*"] if keyword_only else []), *keyword_only]
    init = _compiled(cls, "__init__", parameters, lines or ["pass"], names, scope)
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls)}
    init.__annotations__["return"] = None
    return init


def _compiled_eq(cls: "type[DataclassInstance]", names: dict[str, object]) -> Callable[..., object]:
    lines = [
        "if other.__class__ is self.__class__:",
        f"    return {_compared(cls, 'self')} == {_compared(cls, 'other')}",
        "return NotImplemented",
    ]
    return _compiled(cls, "__eq__", ["other"], lines, names)


def _compiled_hash(
    cls: "type[DataclassInstance]", names: dict[str, object]
) -> Callable[..., object]:
    return _compiled(cls, "__hash__", [], [f"return hash({_compared(cls, 'self')})"], names)


def _compared(cls: "type[DataclassInstance]", instance: str) -> str:
    """Return the text of a tuple: the fields of this variable's value that are compared."""
    fields = [field.name for field in dataclasses.fields(cls) if field.compare]
    return f"({''.join(f'{instance}.{name}, ' for name in fields)})"


def _compiled(
    cls: type[object],
    name: str,
    parameters: Iterable[str],
    lines: Sequence[str],
    names: dict[str, object],
    scope: dict[str, object] | None = None,
) -> Callable[..., object]:
    """Compile a method. `names` are those of the module of `cls`; `scope` has others for it."""
    scope = scope or {}
    source = "\n".join(
        (
            f"def define({', '.join(scope)}):",
            f"    def {name}({', '.join(('self', *parameters))}):",
            *(f"        {line}" for line in lines),
            f"    return {name}",
        )
    )
    defined: dict[str, Callable[..., Callable[..., object]]] = {}
    # The text consists of the names of fields, which are written in a module.
    exec(source, names, defined)  # noqa: S102
    method = defined["define"](**scope)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method
