"""Which steps of a large workflow are drawn as one."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman_console.faces.web.drawings.folding import FEW, MANY, Folded, Kinds, folded

QUIET = frozenset({"done", "pending", "undone"})
TOGETHER = (frozenset({"done"}), frozenset({"pending"}))
Befores = Mapping[str, Sequence[str]]


def fold(after: Befores, kinds: Mapping[str, str], few: int = 0) -> Folded:
    return folded(after, Kinds(kinds, QUIET, TOGETHER), few)


def chain(many: int) -> dict[str, list[str]]:
    names = [f"s{place:02}" for place in range(many)]
    return {name: names[max(place - 1, 0) : place] for place, name in enumerate(names)}


def test_a_chain_is_what_is_done_then_the_failed_step_then_what_is_pending() -> None:
    after = chain(40)
    names = [*after]
    kinds = {
        name: "done" if place < 17 else "failed" if place == 17 else "pending"
        for place, name in enumerate(names)
    }
    found = fold(after, kinds)
    assert [*found.members.values()] == [tuple(names[:17]), ("s17",), tuple(names[18:])]
    assert found.after == {"s00": (), "s17": ("s00",), "s18": ("s17",)}


def test_steps_side_by_side_are_one_of_each_kind_and_failed_ones_stay_apart() -> None:
    lines = [f"l{place}" for place in range(20)]
    after = {"begin": [], **{name: ["begin"] for name in lines}, "end": lines}
    kinds = dict.fromkeys(after, "done") | dict.fromkeys(lines[12:], "pending")
    kinds |= {"l3": "failed", "l7": "failed", "end": "pending"}
    found = fold(after, kinds)
    sizes = {name: len(members) for name, members in found.members.items()}
    assert sizes == {"begin": 1, "l0": 10, "l3": 1, "l7": 1, "l12": 8, "end": 1}
    assert found.after["end"] == ("l0", "l3", "l7", "l12")


def test_many_failed_steps_side_by_side_are_one() -> None:
    lines = [f"l{place}" for place in range(20)]
    after = {name: list[str]() for name in lines}
    found = fold(after, dict.fromkeys(lines, "failed"))
    assert [len(members) for members in found.members.values()] == [20]


def test_a_row_of_fans_is_folded_as_a_whole() -> None:
    after: dict[str, list[str]] = {"s": []}
    before = ["s"]
    for level in range(5):
        names = [f"f{level}{place}" for place in range(4)]
        after |= dict.fromkeys(names, before) | {f"j{level}": names}
        before = [f"j{level}"]
    found = fold(after, dict.fromkeys(after, "done"))
    assert [len(members) for members in found.members.values()] == [len(after)]


def test_a_small_workflow_is_drawn_step_by_step() -> None:
    after = chain(FEW)
    assert len(fold(after, dict.fromkeys(after, "done"), FEW).members) == FEW
    after = chain(FEW + 1)
    assert len(fold(after, dict.fromkeys(after, "done"), FEW).members) == 1


def test_a_tangled_workflow_is_folded_by_what_is_done_and_what_has_not_begun() -> None:
    # Each step comes after two of the level before it: no two have the same neighbours.
    levels = [[f"n{level}{place}" for place in range(5)] for level in range(10)]
    after: dict[str, list[str]] = {name: [] for name in levels[0]}
    for above, below in pairwise(levels):
        after |= {
            name: [above[place], above[(place + 1 + place % 2) % 5]]
            for place, name in enumerate(below)
        }
    kinds = {
        name: "done" if int(name[1]) < 4 else "under way" if int(name[1]) == 4 else "pending"
        for name in after
    }
    assert len(after) > MANY
    found = fold(after, kinds)
    assert sorted(len(members) for members in found.members.values()) == [1, 1, 1, 1, 1, 20, 25]


@st.composite
def workflows(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, str]]:
    """A workflow in which some steps are done, and steps after them are not."""
    many = draw(st.integers(1, 40))
    names = [f"n{place}" for place in range(many)]
    after = {
        name: sorted({names[one] for one in draw(st.lists(st.integers(0, place - 1), max_size=3))})
        if place
        else []
        for place, name in enumerate(names)
    }
    kinds: dict[str, str] = {}
    for name in names:
        ready = all(kinds[other] == "done" for other in after[name])
        kinds[name] = draw(st.sampled_from(["done", "failed", "pending"])) if ready else "pending"
    return after, kinds


@pytest.mark.exhaustive
@given(workflows())
@settings(max_examples=300)
def test_each_step_is_in_one_group_of_its_kind_each_line_is_kept_and_none_leads_back(
    given: tuple[dict[str, list[str]], dict[str, str]],
) -> None:
    after, kinds = given
    found = fold(after, kinds)
    assert sorted(one for members in found.members.values() for one in members) == sorted(after)
    group = {one: name for name, members in found.members.items() for one in members}
    for members in found.members.values():
        assert len({kinds[one] for one in members}) == 1
    for name, befores in after.items():
        for other in befores:
            same = group[other] == group[name]
            assert same or group[other] in found.after[group[name]], "no line is lost"
    left = dict(found.after)
    while left:
        free = [name for name, befores in left.items() if not {*befores} & {*left}]
        assert free, f"a line leads back: {left}"
        for name in free:
            del left[name]
