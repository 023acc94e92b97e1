"""Classes of `roundsman.lazy_dataclass` and of the standard library pass the same tests."""

import builtins
import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from unittest.mock import patch

import pytest

from roundsman import lazy_dataclass


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    x: int
    y: int = 0
    seen: list[str] = field(default_factory=list, compare=False, repr=False)


@lazy_dataclass.dataclass(frozen=True, slots=True)
class LazyPoint:
    x: int
    y: int = 0
    seen: list[str] = field(default_factory=list, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StandardOpen:
    x: int = 0
    other: "StandardOpen | None" = None

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@lazy_dataclass.dataclass(frozen=True, kw_only=True)
class LazyOpen:
    x: int = 0
    other: "LazyOpen | None" = None

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


points = pytest.mark.parametrize("point", [StandardPoint, LazyPoint])
opens = pytest.mark.parametrize("of", [StandardOpen, LazyOpen])
both = pytest.mark.parametrize(
    "decorator", [dataclasses.dataclass, lazy_dataclass.dataclass], ids=["standard", "lazy"]
)
Point = type[StandardPoint]
Open = type[StandardOpen]
Decorator = Callable[..., Callable[[type[object]], type[object]]]


@points
def test_it_shows_the_fields_that_are_shown(point: Point) -> None:
    assert repr(point(1, seen=["a"])) == f"{point.__name__}(x=1, y=0)"


@points
def test_equal_values_are_equal_and_have_one_hash(point: Point) -> None:
    assert point(1, 2, ["a"]) == point(x=1, y=2)
    assert hash(point(1, 2, ["a"])) == hash(point(1, 2))
    assert point(1, 2) != point(1, 3)
    assert len({point(1, 2), point(1, 2), point(2, 1)}) == 2


@points
def test_values_of_two_classes_are_never_equal(point: Point) -> None:
    class Other(point):  # type: ignore[misc, valid-type]  # mypy needs a class that is written
        pass

    assert Other(1) != point(1)
    assert point(1).__eq__(1) is NotImplemented


@points
def test_a_field_cannot_be_assigned_or_deleted(point: Point) -> None:
    made = point(1)
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'x'$"):
        made.x = 2  # type: ignore[misc]  # this is what the test is about
    with pytest.raises(FrozenInstanceError, match=r"^cannot delete field 'x'$"):
        del made.x
    # Python 3.11 raises TypeError here for its own classes, by mistake.
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.unknown = 2  # type: ignore[attr-defined]  # likewise
    assert made == point(1)


@points
def test_slots_leave_no_room_for_other_attributes(point: Point) -> None:
    assert not hasattr(point(1), "__dict__")
    assert point.__slots__ == ("x", "y", "seen")


@points
def test_a_default_is_made_anew_for_each_instance(point: Point) -> None:
    first, second = point(1), point(1)
    first.seen.append("a")
    assert second.seen == []


@points
def test_it_works_with_the_functions_of_the_standard_library(point: Point) -> None:
    assert is_dataclass(point)
    assert [each.name for each in fields(point)] == ["x", "y", "seen"]
    assert replace(point(1, 2), y=3) == point(1, 3)
    assert dataclasses.astuple(point(1, 2)) == (1, 2, [])
    assert dataclasses.asdict(point(1, 2)) == {"x": 1, "y": 2, "seen": []}


@points
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_it_is_copied_and_pickled(
    point: Point, duplicate: Callable[[StandardPoint], StandardPoint]
) -> None:
    made = point(1, 2, ["a"])
    for one in (duplicate(made), pickle.loads(pickle.dumps(made))):  # noqa: S301  # of this test
        assert (one, one.seen) == (made, ["a"])
        assert one is not made


@points
def test_a_pattern_matches_its_fields(point: Point) -> None:
    match point(1, 2):
        case point(1, y=found):
            assert found == 2
        case _:
            pytest.fail("the pattern did not match")


@points
def test_a_call_with_wrong_arguments_says_which(point: Point) -> None:
    name = f"{point.__name__}.__init__()"
    with pytest.raises(TypeError) as missing:
        point()  # type: ignore[call-arg]  # this is what the test is about
    with pytest.raises(TypeError) as unknown:
        point(1, z=2)  # type: ignore[call-arg]  # likewise
    assert str(missing.value) == f"{name} missing 1 required positional argument: 'x'"
    assert str(unknown.value) == f"{name} got an unexpected keyword argument 'z'"


@opens
def test_keyword_only_fields_are_refused_by_position(of: Open) -> None:
    with pytest.raises(TypeError, match="positional"):
        of(1)  # type: ignore[call-arg]  # this is what the test is about
    assert of(x=1, other=of()).other == of(x=0)


@opens
def test_what_its_author_checks_is_checked(of: Open) -> None:
    with pytest.raises(ValueError, match="x is negative"):
        of(x=-1)
    with pytest.raises(ValueError, match="x is negative"):
        replace(of(), x=-1)


@opens
def test_without_slots_it_is_copied_and_pickled_too(of: Open) -> None:
    made = of(x=1)
    assert made == copy.deepcopy(made) == pickle.loads(pickle.dumps(made))  # noqa: S301  # likewise


def test_its_signature_is_that_of_the_standard_library() -> None:
    for ours, theirs in ((LazyPoint, StandardPoint), (LazyOpen, StandardOpen)):
        mine, other = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
        assert [(each.name, each.kind) for each in mine.values()] == [
            (each.name, each.kind) for each in other.values()
        ]
    hints = typing.get_type_hints(LazyOpen.__init__)
    assert hints == {"x": int, "other": LazyOpen | None, "return": type(None)}
    assert str(inspect.signature(LazyPoint)) == str(inspect.signature(StandardPoint))


@both
def test_methods_that_the_class_defines_stay(decorator: Decorator) -> None:
    class Secret:
        text: str

        def __repr__(self) -> str:
            return "***"

    made = decorator(frozen=True)(Secret)
    assert repr(made("a")) == "***"  # type: ignore[call-arg]  # a dataclass now


@both
def test_a_subclass_has_the_fields_of_its_base_first(decorator: Decorator) -> None:
    class Base:
        x: int

    class Derived(decorator(frozen=True, slots=True)(Base)):  # type: ignore[misc]  # as above
        y: int = 0

    made = decorator(frozen=True, slots=True)(Derived)
    assert [each.name for each in fields(made)] == ["x", "y"]  # type: ignore[arg-type]  # a dataclass now
    assert repr(made(1)).endswith("Derived(x=1, y=0)")  # type: ignore[call-arg]  # likewise


@both
def test_a_subclass_can_leave_comparing_to_its_base(decorator: Decorator) -> None:
    class Base:
        x: int

    base = decorator(frozen=True, slots=True)(Base)

    class Derived(base):  # type: ignore[misc, valid-type]  # as above
        y: int = 0

    made = decorator(frozen=True, slots=True, eq=False)(Derived)
    assert made(1, 2) == made(1, 3)  # type: ignore[call-arg]  # likewise
    assert made(1, 2) != made(2, 2)  # type: ignore[call-arg]  # likewise


@both
def test_a_class_without_fields_is_equal_to_itself(decorator: Decorator) -> None:
    class Empty:
        pass

    made = decorator(frozen=True, slots=True)(Empty)
    assert made() == made()
    assert hash(made()) == hash(made())
    assert repr(made()).endswith("Empty()")


@both
def test_one_that_is_not_frozen_is_assigned_and_has_no_hash(decorator: Decorator) -> None:
    class Counter:
        n: int = 0
        hidden: int = field(default=7, init=False)
        made: list[int] = field(default_factory=list, init=False)

    made = decorator(slots=True)(Counter)()
    made.n = 3  # type: ignore[attr-defined]  # a dataclass now
    assert (made.n, made.hidden, made.made) == (3, 7, [])  # type: ignore[attr-defined]  # likewise
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


@both
def test_it_is_applied_without_options(decorator: Decorator) -> None:
    class Counter:
        n: int = 0

    made = typing.cast("Callable[..., object]", decorator(Counter))
    assert made(n=1) == made(1)


@both
def test_a_class_that_writes_its_own_equality_keeps_a_hash(decorator: Decorator) -> None:
    class Nocase:  # noqa: PLW1641  # the decorator adds the hash
        text: str

        def __eq__(self, other: object) -> bool:
            return self.text.lower() == getattr(other, "text", "").lower()

    made = decorator(frozen=True)(Nocase)
    assert made("a") == made("A")  # type: ignore[call-arg]  # a dataclass now
    assert hash(made("a")) == hash(made("a"))  # type: ignore[call-arg]  # likewise


@opens
def test_a_frozen_class_of_the_standard_library_can_inherit_from_it(of: Open) -> None:
    @dataclasses.dataclass(frozen=True)
    class Heir(of):  # type: ignore[misc, valid-type]  # mypy needs a class that is written
        y: int = 0

    assert Heir(1, x=2) == Heir(1, x=2)
    with pytest.raises(FrozenInstanceError):
        Heir(1).x = 3
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclasses.dataclass
        class Open(of):  # type: ignore[misc, valid-type]  # as above
            y: int = 0


@both
def test_a_value_that_contains_itself_is_shown(decorator: Decorator) -> None:
    class Node:
        others: list[object]

    made = typing.cast("Callable[[list[object]], object]", decorator()(Node))
    others: list[object] = []
    node = made([others, others])
    others.append(node)
    assert repr(node).endswith("Node(others=[[...], [...]])")


@points
def test_pytest_can_say_which_field_differs(point: Point) -> None:
    """It looks for a comparison that was generated."""
    assert point.__eq__.__code__.co_filename == "<string>"


def test_only_the_first_use_compiles_and_only_once() -> None:
    with patch.object(builtins, "exec", wraps=exec) as compiled:

        @dataclasses.dataclass(frozen=True, slots=True)
        class Standard:
            x: int

        theirs = compiled.call_count
        compiled.reset_mock()

        @lazy_dataclass.dataclass(frozen=True, slots=True)
        class Lazy:
            x: int

        assert (theirs, compiled.call_count) == (6, 0)
        assert Lazy(1) in [Lazy(1)]
        assert repr(Lazy(1))
        assert compiled.call_count == 2  # __init__ and __eq__
        assert len({Lazy(1), Lazy(2)}) == 2
        assert Standard(1) == Standard(1)
        assert compiled.call_count == 3
