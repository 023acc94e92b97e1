"""What has ended of the stored holds: each end is another text, and an end by time is one."""

from roundsman.model.holds import BREAKER, ENDED, EVERY_WORKFLOW, OPERATOR, Hold, unreadable_hold
from roundsman.model.wakes import EndedHolds, ended_holds

NOW = 1_800_000_000_000
LATER = NOW + 60_000
ALL = Hold("", OPERATOR, NOW, LATER, "", "amy", workflow=EVERY_WORKFLOW)
ONE = Hold("", OPERATOR, NOW, LATER, "", "amy", workflow="one")
AGENT = Hold("payment", OPERATOR, NOW, LATER, "", "amy")


def with_share(hold: Hold, share: int) -> Hold:
    return Hold("", OPERATOR, hold.since, hold.until, "", "amy", False, hold.workflow, False, share)


def ended(now: int, *holds: Hold) -> dict[str, str]:
    return {one.target: one.of for one in ended_holds(holds, now)}


def test_a_hold_on_an_agent_has_ended_at_its_end_and_not_before() -> None:
    assert ended(LATER - 1, AGENT) == {}
    assert ended(LATER, AGENT) == {"payment": f"/operator/{NOW}/{LATER}/0"}


def test_an_agent_whose_circuit_is_open_has_not_ended_when_its_operator_releases_it() -> None:
    released = Hold("payment", OPERATOR, NOW, ENDED, "", "amy")
    opened = Hold("payment", BREAKER, NOW, LATER, "", "the breaker")
    assert ended(NOW, released, opened) == {}
    assert [one.on_trial for one in ended_holds([released, opened], LATER)] == [True]
    closed = Hold("payment", BREAKER, NOW, ENDED, "", "the breaker")
    assert ended_holds([closed, released], NOW) == [
        EndedHolds("payment", f"/breaker/{NOW}/0/0 /operator/{NOW}/0/0")
    ]


def test_a_hold_on_orders_that_ends_by_itself_is_another_end_than_its_share() -> None:
    part = with_share(ALL, 10)
    before, after = ended(LATER - 1, part), ended(LATER, part)
    assert before.keys() == after.keys() == {"*"}
    assert before != after


def test_each_of_two_holds_on_workflows_that_end_by_themselves_is_an_end() -> None:
    later = Hold("", OPERATOR, NOW, LATER + 1, "", "amy", workflow="two")
    ends = [ended(at, ONE, later).get("*") for at in (NOW, LATER, LATER + 1)]
    assert ends[0] is None
    assert len(set(ends)) == 3


def test_a_hold_in_force_that_lets_nobody_go_on_is_no_part_of_the_end_of_another() -> None:
    over = Hold("", OPERATOR, NOW, ENDED, "", "amy", workflow="one")
    for at in (NOW, NOW + 1):
        unreadable = unreadable_hold("", OPERATOR, "no JSON", at, workflow="two")
        assert ended(at, over, unreadable) == ended(at, over)


def test_nothing_of_the_holds_on_orders_has_ended_while_all_orders_are_held() -> None:
    over = Hold("", OPERATOR, NOW, ENDED, "", "amy", workflow="one")
    assert ended(NOW, over, ALL) == {}
    assert ended(NOW, ONE) == {}
    assert "*" in ended(NOW, over, with_share(ALL, 1))


def test_a_larger_share_is_another_end_in_any_order_of_the_rows() -> None:
    ends = {ended(NOW, with_share(ALL, share), ONE)["*"] for share in (1, 2)}
    assert len(ends) == 2
    assert ended(LATER, ALL, ONE) == ended(LATER, ONE, ALL)
