"""The holds on agents: what is stored, and what the scheduler reads."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb.control import DynamoAgentBoard
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.checks import NAME
from roundsman.model.events import AgentView, HoldView
from roundsman.model.holds import BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import MINUTE, SECOND, second
from roundsman.model.queue_lag import MARK_UNCERTAINTY
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import answered, error, first_answer_lost, unreachable
from tests.contract.test_marks import Clock
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

BY_ANNA = Hold("payment", OPERATOR, NOW, NOW + 30 * MINUTE, "acquirer maintenance", "anna")
CIRCUIT = Hold("payment", BREAKER, NOW, NOW + 30 * SECOND, "5 calls in a row failed", "breaker")


# ---- the store ---------------------------------------------------------------------------


def test_nobody_is_held_at_first(world: World) -> None:
    assert list(world.holds(Clock()).holds()) == []


def test_holds_are_listed_by_agent_and_kind(world: World) -> None:
    holds = world.holds(Clock())
    mail = replace(BY_ANNA, agent="mail", reason="")
    for hold in (BY_ANNA, CIRCUIT, mail):
        holds.hold(hold)
    assert list(holds.holds()) == [mail, CIRCUIT, BY_ANNA]


def test_a_hold_ends_by_itself_at_its_until(world: World) -> None:
    clock = Clock()
    holds = world.holds(clock)
    holds.hold(CIRCUIT)
    clock.now = CIRCUIT.until - 1
    assert list(holds.holds()) == [CIRCUIT]
    clock.now = CIRCUIT.until
    assert list(holds.holds()) == []


def test_an_operators_later_word_replaces_the_earlier_one_also_to_shorten_it(
    world: World,
) -> None:
    holds = world.holds(Clock())
    holds.hold(BY_ANNA)
    shorter = replace(BY_ANNA, until=NOW + MINUTE, by="ben")
    holds.hold(shorter)
    assert list(holds.holds()) == [shorter]


def test_a_breakers_hold_is_renewed_but_never_shortened_by_one_who_is_late(world: World) -> None:
    holds = world.holds(Clock())
    holds.hold(CIRCUIT)
    renewed = replace(CIRCUIT, until=CIRCUIT.until + 10 * SECOND, reason="the probe failed")
    holds.hold(renewed)
    assert list(holds.holds()) == [renewed]
    holds.hold(CIRCUIT)
    assert list(holds.holds()) == [renewed]


def test_a_hold_that_has_ended_gives_way_to_the_next(world: World) -> None:
    clock = Clock()
    holds = world.holds(clock)
    holds.hold(CIRCUIT)
    clock.now = NOW + MINUTE
    later = replace(CIRCUIT, since=clock.now, until=clock.now + 30 * SECOND)
    holds.hold(later)
    assert list(holds.holds()) == [later]


def test_a_release_ends_one_kind_and_says_whether_it_was_in_force(world: World) -> None:
    clock = Clock()
    holds = world.holds(clock)
    assert not holds.release("payment", OPERATOR), "nothing was ever held"
    holds.hold(BY_ANNA)
    holds.hold(CIRCUIT)
    assert not holds.release("mail", OPERATOR)
    assert holds.release("payment", OPERATOR)
    assert list(holds.holds()) == [CIRCUIT]
    assert not holds.release("payment", OPERATOR), "it is gone already"
    clock.now = CIRCUIT.until
    assert not holds.release("payment", BREAKER), "it had ended by itself"


def test_a_hold_whose_answer_was_lost_is_in_force(dynamo_world: World) -> None:
    holds = dynamo_world.holds(Clock())
    for hold in (CIRCUIT, BY_ANNA):
        with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
            holds.hold(hold)
        assert attempts == [1, 2]
    assert holds.holds() == [CIRCUIT, BY_ANNA]


def test_holds_that_cannot_be_read_or_written_now_are_tried_again(moto_world: World) -> None:
    holds = moto_world.holds(Clock())
    with unreachable(moto_world.client, "GetItem"), pytest.raises(TryAgain, match="the holds"):
        holds.holds()
    with unreachable(moto_world.client, "UpdateItem"):
        with pytest.raises(TryAgain, match="holding the agent payment"):
            holds.hold(BY_ANNA)
        with pytest.raises(TryAgain, match="releasing the agent payment"):
            holds.release("payment", OPERATOR)


def test_a_hold_without_the_right_is_refused(moto_world: World) -> None:
    refused = answered(moto_world.client, "UpdateItem", 400, error("AccessDeniedException"))
    with refused, pytest.raises(CallRefused, match="holding the agent payment: AccessDenied"):
        moto_world.holds(Clock()).hold(BY_ANNA)


GOOD: dict[str, "Value"] = {
    "Since": {"N": "1"},
    "Until": {"N": "99999999999999"},
    "Reason": {"S": "?"},
    "By": {"S": "anna"},
}
NO_HOLDS: dict[str, "Value"] = {
    "text": {"S": "anna"},
    "empty": {"M": {}},
    "until words": {"M": {**GOOD, "Until": {"S": "tomorrow"}}},
    "since words": {"M": {**GOOD, "Since": {"S": "yesterday"}}},
    "without a reason": {"M": {key: GOOD[key] for key in ("Since", "Until", "By")}},
    "by a number": {"M": {**GOOD, "By": {"N": "7"}}},
}


def spoilt(world: World, kind: str, value: "Value") -> list[Hold]:
    """Mail is held as it should be; the payment agent's hold of that kind is no hold."""
    world.client.put_item(
        TableName=world.tables.control,
        Item={"ControlId": {"S": "holds"}, f"payment/{kind}": value},
    )
    mail = replace(BY_ANNA, agent="mail")
    world.holds(Clock()).hold(mail)
    return [mail]


@pytest.mark.parametrize("kind", [OPERATOR, BREAKER])
@pytest.mark.parametrize("strange", NO_HOLDS)
def test_a_hold_that_cannot_be_read_holds_its_own_agent_until_it_is_released(
    dynamo_world: World, strange: str, kind: str
) -> None:
    others = spoilt(dynamo_world, kind, NO_HOLDS[strange])
    clock = Clock()
    holds = dynamo_world.holds(clock)
    for _ in range(3):
        *rest, hold = holds.holds()
        assert rest == [other for other in others if other.until > clock.now]
        assert (hold.agent, hold.kind, hold.unreadable) == ("payment", kind, True)
        assert hold.until > clock.now
        assert "release payment, or hold it again" in hold.reason
        clock.now += 20 * MINUTE
    assert holds.release("payment", kind)
    assert holds.holds() == []


@pytest.mark.parametrize("hold", [BY_ANNA, CIRCUIT], ids=[OPERATOR, BREAKER])
@pytest.mark.parametrize("strange", NO_HOLDS)
def test_a_hold_that_cannot_be_read_gives_way_to_the_next_of_its_kind(
    dynamo_world: World, strange: str, hold: Hold
) -> None:
    others = spoilt(dynamo_world, hold.kind, NO_HOLDS[strange])
    holds = dynamo_world.holds(Clock())
    assert not holds.hold(hold), "one was in force"
    assert holds.holds() == [*others, hold]


def test_a_name_that_is_no_agent_and_kind_holds_nobody_and_each_is_reported(
    dynamo_world: World,
) -> None:
    names = ["payment", "payment/", "/operator", "payment/somehow"]
    names += ["workflow:/operator", "workflow:story/breaker", "workflow:story"]
    dynamo_world.client.put_item(
        TableName=dynamo_world.tables.control,
        Item={"ControlId": {"S": "holds"}, **{name: {"S": "x"} for name in names}},
    )
    reported: list[UnreadableRecord] = []
    table = dynamo_world.tables.control
    holds = DynamoHolds(
        dynamo_world.client, control_table=table, clock=Clock(), on_unreadable=reported.append
    )
    assert holds.holds() == []
    assert len(reported) == len(names)


# ---- holds on orders ---------------------------------------------------------------------

EVERYTHING = Hold(
    "", OPERATOR, NOW, NOW + 60 * MINUTE, "bad weather", "anna", workflow=EVERY_WORKFLOW, undos=True
)
STORY = replace(EVERYTHING, workflow="story", undos=False, released=10)


def test_a_hold_on_orders_is_stored_beside_those_on_agents_and_comes_first(world: World) -> None:
    holds = world.holds(Clock())
    for hold in (BY_ANNA, STORY, EVERYTHING):
        assert holds.hold(hold)
    assert list(holds.holds()) == [EVERYTHING, STORY, BY_ANNA]
    assert not holds.release("", OPERATOR), "an agent without a name is nothing"


def test_a_hold_is_changed_only_as_it_was_read(world: World) -> None:
    holds = world.holds(Clock())
    holds.hold(EVERYTHING)
    one, ten = replace(EVERYTHING, released=1), replace(EVERYTHING, released=10)
    assert holds.change(EVERYTHING, one)
    assert not holds.change(EVERYTHING, ten), "somebody has changed it"
    assert list(holds.holds()) == [one]
    assert holds.change(one, ten)
    ended = replace(ten, until=NOW)
    assert holds.change(ten, ended)
    assert not holds.change(ten, one)
    assert list(holds.holds()) == []


def test_the_orders_that_a_hold_lets_pass_are_stored_with_it(world: World) -> None:
    holds = world.holds(Clock())
    holds.hold(BY_ANNA)
    passed = BY_ANNA.letting_pass("ord-1").letting_pass("ord-2")
    assert holds.change(BY_ANNA, passed)
    assert list(holds.holds()) == [passed]
    assert passed.passes == ("ord-1", "ord-2")
    assert not holds.change(BY_ANNA, passed.letting_pass("ord-3")), "somebody has changed it"


def test_a_hold_that_is_changed_into_one_that_has_ended_can_be_placed_again_once(
    world: World,
) -> None:
    holds = world.holds(Clock())
    holds.hold(EVERYTHING)
    ended, again = replace(EVERYTHING, until=0), replace(EVERYTHING, reason="again")
    assert holds.change(EVERYTHING, ended)
    assert list(holds.holds()) == []
    assert holds.change(ended, again)
    assert not holds.change(ended, replace(again, by="ben"))
    assert list(holds.holds()) == [again]


def test_a_change_whose_answer_was_lost_was_made(dynamo_world: World) -> None:
    holds = dynamo_world.holds(Clock())
    holds.hold(EVERYTHING)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert holds.change(EVERYTHING, replace(EVERYTHING, released=1))
    assert attempts == [1, 2]


def test_a_hold_of_before_holds_on_orders_is_read_and_written_as_it_was(
    dynamo_world: World,
) -> None:
    name = "payment/operator"
    dynamo_world.client.put_item(
        TableName=dynamo_world.tables.control,
        Item={"ControlId": {"S": "holds"}, name: {"M": GOOD}},
    )
    holds = dynamo_world.holds(Clock())
    assert holds.holds() == [Hold("payment", OPERATOR, 1, 99999999999999, "?", "anna")]
    holds.hold(holds.holds()[0])
    key = {"ControlId": {"S": "holds"}}
    stored = dynamo_world.client.get_item(TableName=dynamo_world.tables.control, Key=key)
    assert stored["Item"][name] == {"M": GOOD}


def test_code_of_before_takes_a_hold_on_orders_for_one_on_an_agent_that_cannot_exist(
    dynamo_world: World,
) -> None:
    dynamo_world.holds(Clock()).hold(EVERYTHING)
    key = {"ControlId": {"S": "holds"}}
    stored = dynamo_world.client.get_item(TableName=dynamo_world.tables.control, Key=key)
    [name] = stored["Item"].keys() - key
    agent, _, kind = name.partition("/")
    assert kind == OPERATOR
    assert NAME.fullmatch(agent) is None
    assert stored["Item"][name]["M"].keys() >= GOOD.keys()


@pytest.mark.parametrize("strange", [*NO_HOLDS, "undos words", "released words"])
def test_a_hold_on_orders_that_cannot_be_read_holds_them_until_it_is_released(
    dynamo_world: World, strange: str
) -> None:
    more: dict[str, Value] = {
        "undos words": {"M": {**GOOD, "Undos": {"S": "yes"}}},
        "released words": {"M": {**GOOD, "Released": {"S": "half"}}},
    }
    value = {**NO_HOLDS, **more}[strange]
    dynamo_world.client.put_item(
        TableName=dynamo_world.tables.control,
        Item={"ControlId": {"S": "holds"}, "workflow:story/operator": value},
    )
    clock = Clock()
    holds = dynamo_world.holds(clock)
    for _ in range(2):
        [hold] = holds.holds()
        assert (hold.workflow, hold.agent, hold.unreadable, hold.released) == ("story", "", True, 0)
        assert "release workflow story, or hold it again" in hold.reason
        assert hold.holds_order("story", "ord-1")
        assert not hold.holds_order("other", "ord-1")
        clock.now += 20 * MINUTE
    holds.hold(replace(STORY, until=NOW))
    assert holds.holds() == []


def test_the_board_lists_holds_on_orders_apart_from_the_views_of_agents(world: World) -> None:
    clock = Clock()
    board, _ = world.board(clock)
    world.holds(clock).hold(STORY)
    assert board.agents() == {}
    assert list(board.order_holds()) == [STORY]


def test_a_change_that_cannot_be_made_says_of_what(moto_world: World) -> None:
    holds = moto_world.holds(Clock())
    lost = unreachable(moto_world.client, "UpdateItem")
    with lost, pytest.raises(TryAgain, match="changing the hold on the orders of story"):
        holds.change(STORY, STORY)
    refused = answered(moto_world.client, "UpdateItem", 400, error("AccessDeniedException"))
    with refused, pytest.raises(CallRefused, match="holding the orders of story: AccessDenied"):
        holds.hold(STORY)


# ---- the board ---------------------------------------------------------------------------


def test_an_agent_on_hold_is_held_with_both_its_queues_though_none_was_ever_read(
    world: World,
) -> None:
    clock = Clock()
    board, _ = world.board(clock)
    world.holds(clock).hold(BY_ANNA)
    why = f"on hold by anna until {second(BY_ANNA.until)}: acquirer maintenance"
    held = AgentView(unread=True, agent_hold=HoldView(BY_ANNA.until, why))
    assert board.agents() == {"payment/normal": held, "payment/urgent": held}


def test_what_is_known_of_the_queue_is_listed_beside_its_hold(world: World) -> None:
    clock = Clock()
    board, notes = world.board(clock)
    notes.note_read("payment", "normal", NOW - 40 * SECOND)
    notes.note_read("mail", "normal", NOW - SECOND)
    world.holds(clock).hold(CIRCUIT)
    agents = board.agents()
    assert agents["payment/normal"] == AgentView(
        lag=40 * SECOND,
        reads=NOW - 40 * SECOND,
        read_up_to=NOW - 40 * SECOND + MARK_UNCERTAINTY,
        agent_hold=HoldView(
            CIRCUIT.until,
            f"its circuit is open until {second(CIRCUIT.until)}: 5 calls in a row failed",
        ),
    )
    assert agents["mail/normal"].agent_hold is None


def test_an_agent_whose_hold_cannot_be_read_is_held_and_no_other(
    dynamo_world: World,
) -> None:
    spoilt(dynamo_world, OPERATOR, NO_HOLDS["until words"])
    dynamo_world.holds(Clock()).release("mail", OPERATOR)
    board, notes = dynamo_world.board(Clock())
    notes.note_read("mail", "normal", NOW - SECOND)
    agents = board.agents()
    assert agents["mail/normal"].agent_hold is None
    held = agents["payment/normal"]
    assert held == agents["payment/urgent"]
    assert held.agent_hold is not None
    assert held.agent_hold.until > NOW
    assert held.agent_hold.why == (
        "on hold: its hold cannot be read (payment/operator.Until is not a whole number); "
        "release payment, or hold it again"
    )


def test_an_agent_held_for_two_reasons_is_held_as_long_as_the_longer_one(world: World) -> None:
    clock = Clock()
    board, _ = world.board(clock)
    holds = world.holds(clock)
    holds.hold(BY_ANNA)
    holds.hold(CIRCUIT)
    hold = board.agents()["payment/urgent"].agent_hold
    assert hold is not None
    assert hold.until == BY_ANNA.until
    assert "its circuit is open" in hold.why
    assert "on hold by anna" in hold.why
    clock.now = CIRCUIT.until
    hold = board.agents()["payment/urgent"].agent_hold
    assert hold is not None
    assert "its circuit is open" not in hold.why
    clock.now = BY_ANNA.until
    assert board.agents() == {}


@pytest.mark.exhaustive
def test_holds_are_read_with_the_marks_at_most_every_five_seconds(
    dynamo_world: World,
) -> None:
    clock = Clock()
    table = dynamo_world.tables.control
    board = DynamoAgentBoard(dynamo_world.client, control_table=table, clock=clock)
    assert board.agents() == {}
    dynamo_world.holds(clock).hold(CIRCUIT)
    clock.now = NOW + 5 * SECOND - 1
    assert board.agents() == {}
    clock.now = NOW + 5 * SECOND
    hold = board.agents()["payment/normal"].agent_hold
    assert hold is not None
    assert hold.until == CIRCUIT.until
    clock.now = CIRCUIT.until
    with unreachable(dynamo_world.client, "GetItem"), pytest.raises(TryAgain):
        board.agents()
    assert board.agents() == {}


def test_what_was_kept_of_a_hold_is_not_shown_after_its_end(dynamo_world: World) -> None:
    clock = Clock()
    dynamo_world.holds(clock).hold(replace(CIRCUIT, until=NOW + 2 * SECOND))
    table = dynamo_world.tables.control
    board = DynamoAgentBoard(dynamo_world.client, control_table=table, clock=clock)
    hold = board.agents()["payment/normal"].agent_hold
    assert hold is not None
    assert hold.until == NOW + 2 * SECOND
    clock.now = NOW + 2 * SECOND
    assert board.agents() == {}
