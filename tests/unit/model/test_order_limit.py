"""Whose turn it is among the orders of one value: a pure decision, with its reason."""

from dataclasses import replace

import pytest

from roundsman.model.order_limit import LOOKS_AGAIN_IN, LimitRow, Turn, order_of, turn_of
from roundsman.model.situations import TURN, Parked
from roundsman.model.task import StepRecord, Task
from tests.contract.samples import NOW, born

NEW = replace(born("me"), limit="key")


def waiting_since(since: int) -> Task:
    parked = Parked(not_before=NOW, claim_by=NOW, since=since, held_for=TURN)
    return replace(NEW, steps={"a": StepRecord(situation=parked)})


def test_the_first_order_begins() -> None:
    turn = turn_of(LimitRow(), NEW, [], 1)
    assert turn == Turn(True, "it is its turn: 1 of 1")


def test_an_order_waits_while_as_many_are_under_way_as_its_plan_says() -> None:
    row = LimitRow(("a", "b"))
    assert turn_of(row, NEW, [], 3).free
    turn = turn_of(row, NEW, [], 2)
    assert turn == Turn(False, "waits for its turn: 2 of at most 2 are under way")


@pytest.mark.parametrize("holders", [("me",), ("a", "me"), ("a", "b", "me")])
def test_an_order_that_is_listed_has_its_turn_whoever_waits(holders: tuple[str, ...]) -> None:
    assert turn_of(LimitRow(holders), NEW, [(1, "b")], 1).free


def test_an_order_whose_earlier_turn_is_listed_still_waits_for_the_end_of_that() -> None:
    again = replace(NEW, turns=1)
    assert again.turn == "me#1"
    assert order_of(again.turn) == "me"
    assert not turn_of(LimitRow(("me",)), again, [], 1).free
    assert turn_of(LimitRow(("me",)).without("me"), again, [], 1).free


def test_no_order_begins_before_one_that_has_waited_for_longer() -> None:
    before = turn_of(LimitRow(), NEW, [(NOW, "first")], 1)
    assert (before.free, before.again_in, before.wakes) == (False, LOOKS_AGAIN_IN, "first")
    me = waiting_since(NOW)
    assert not turn_of(LimitRow(), me, [(NOW - 1, "first")], 1).free
    assert not turn_of(LimitRow(), me, [(NOW, "a")], 1).free, "by its id, at one instant"
    for later in ((NOW, "n"), (NOW + 1, "a"), (NOW, "me")):
        assert turn_of(LimitRow(), me, [later], 1).free


def test_who_has_begun_already_is_not_before_another_though_the_index_still_shows_it() -> None:
    assert turn_of(LimitRow(("first",)), NEW, [(NOW, "first")], 2).free


def test_an_order_that_begins_wakes_the_next_one_if_there_is_room_for_that() -> None:
    me, others = waiting_since(NOW), [(NOW, "me"), (NOW + 1, "next"), (NOW + 2, "later")]
    assert turn_of(LimitRow(("a",)), me, others, 3).wakes == "next"
    assert turn_of(LimitRow(("a",)), me, others, 2).wakes is None
