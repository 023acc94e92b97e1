"""Our dataclass does what the standard one does; the standard one is asked, each time."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, TypeVar

import pytest

from roundsman.task import StepRecord, Task
from roundsman.value_classes import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ours(Generic[T]):
    """Every kind of field."""

    kinds: ClassVar[int] = 6
    name: str
    self_: T
    hidden: str = dataclasses.field(default="h", repr=False)
    ignored: int = dataclasses.field(default=0, compare=False)
    made: list[str] = dataclasses.field(default_factory=list, compare=False)
    by_name: int = dataclasses.field(default=7, kw_only=True)

    def __post_init__(self) -> None:
        """A class may still check itself."""
        if self.name == "refused":
            raise ValueError("refused")


@dataclasses.dataclass(frozen=True, slots=True)
class Standard(Generic[T]):
    """The same, by the standard library."""

    kinds: ClassVar[int] = 6
    name: str
    self_: T
    hidden: str = dataclasses.field(default="h", repr=False)
    ignored: int = dataclasses.field(default=0, compare=False)
    made: list[str] = dataclasses.field(default_factory=list, compare=False)
    by_name: int = dataclasses.field(default=7, kw_only=True)

    def __post_init__(self) -> None:
        """A class may still check itself."""
        if self.name == "refused":
            raise ValueError("refused")


@dataclass(frozen=True, kw_only=True)
class OursOfDict:
    """Without slots, and by name only."""

    a: int
    b: int = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class StandardOfDict:
    """The same, by the standard library."""

    a: int
    b: int = 2


@dataclass(frozen=True, slots=True)
class Empty:
    """No field at all."""


@dataclass(frozen=True, slots=True)
class AlsoEmpty:
    """Another one."""


@dataclass(frozen=True, slots=True)
class ItsOwnWords:
    """What a class says itself stays."""

    n: int

    def __repr__(self) -> str:
        return "mine"


def outcome(of: Callable[[], object]) -> object:
    """What came of it, in words that are the same for both classes."""
    try:
        value = of()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)
    return repr(value).replace("Standard", "Ours")


def changed(value: object, name: str) -> None:
    setattr(value, name, "other")


def deleted(value: object, name: str) -> None:
    delattr(value, name)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("a", 1), {}),
        (("a",), {"self_": (1, 2)}),
        (("a", 1, "x", 3, ["y"]), {"by_name": 1}),
        (("a", 1, "x", 3, ["y"], 5), {}),
        (("a", 1), {"name": "twice"}),
        (("a", 1), {"unknown": 1}),
        (("a",), {}),
        (("refused", 1), {}),
        (("a", []), {}),
    ],
)
def test_it_is_made_shown_copied_changed_and_refused_as_the_standard_one(
    args: tuple[object, ...], named: Mapping[str, object]
) -> None:
    def told(cls: Callable[..., object]) -> list[object]:
        def one() -> object:
            return cls(*args, **named)

        return [
            outcome(one),
            outcome(lambda: one() == one()),
            outcome(lambda: hash(one()) == hash(one())),
            outcome(lambda: one() == cls("other", 1)),
            outcome(lambda: one() == ("a", 1)),
            outcome(lambda: copy.deepcopy(one())),
            outcome(lambda: copy.copy(one()) == one()),
            outcome(lambda: pickle.loads(pickle.dumps(one()))),  # noqa: S301
            outcome(lambda: dataclasses.replace(one(), name="b")),  # type: ignore[type-var]
            outcome(lambda: dataclasses.asdict(one())),  # type: ignore[call-overload]
            outcome(lambda: changed(one(), "name")),
            outcome(lambda: deleted(one(), "name")),
        ]

    assert told(Ours) == told(Standard)


def test_its_parameters_and_fields_are_those_of_the_standard_one() -> None:
    for ours, standard in ((Ours, Standard), (OursOfDict, StandardOfDict)):
        told = [
            [(one.name, one.kind, one.default is not one.empty) for one in parameters.values()]
            for parameters in (inspect.signature(cls).parameters for cls in (ours, standard))
        ]
        assert told[0] == told[1]
        assert ours.__match_args__ == standard.__match_args__
        names = [[one.name for one in dataclasses.fields(cls)] for cls in (ours, standard)]
        assert names[0] == names[1]
        assert hasattr(ours, "__slots__") is hasattr(standard, "__slots__")


def test_what_compares_counts_for_hash_and_equality_and_nothing_else() -> None:
    assert Ours("a", 1) == Ours("a", 1, ignored=5, made=["x"])
    assert hash(Ours("a", 1)) == hash(Ours("a", 1, ignored=5))
    assert Ours("a", 1) != Ours("a", 1, hidden="other")
    standard: object = Standard("a", 1)
    assert Ours("a", 1) != standard
    assert len({OursOfDict(a=1), OursOfDict(a=1, b=2), OursOfDict(a=2)}) == 2


def test_each_has_a_list_of_its_own() -> None:
    first, second = Ours("a", 1), Ours("a", 1)
    first.made.append("x")
    assert second.made == []


def test_one_without_fields_equals_its_own_kind_only() -> None:
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    other: object = AlsoEmpty()
    assert Empty() != other
    assert repr(Empty()) == "Empty()"


def test_what_a_class_says_itself_stays() -> None:
    assert repr(ItsOwnWords(1)) == "mine"


def test_one_that_holds_itself_is_shown_and_not_for_ever() -> None:
    holder: list[object] = []
    holder.append(Ours("a", holder))
    assert "..." in repr(holder[0])


def test_one_that_changes_is_refused() -> None:
    with pytest.raises(TypeError, match="standard library"):
        dataclass(frozen=False)


def test_a_record_with_its_steps_is_copied_and_equal() -> None:
    step = StepRecord(failure_count=2, tried=("a", "b"))
    task = Task(
        task_id="ord-1", workflow="w", plan="p", state="Pending",  # type: ignore[arg-type]
        version=1, created_at=0, start_at=0, complete_by=9, retain_for=0, shard=0,
        lane="open#0", due_at=0, steps={"one": step},
    )  # fmt: skip
    again = dataclasses.replace(task, version=2)
    assert again != task
    assert dataclasses.replace(again, version=1) == task
    assert copy.deepcopy(task) == task
