"""What agents note of their reading, and what the scheduler reads of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb.control import DynamoAgentBoard, DynamoReadNotes
from roundsman.errors import CallRefused, UnreadableRecord
from roundsman.model.events import AgentView
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import MARK_UNCERTAINTY, PROMPT_MARK_UNCERTAINTY, ReadMark
from roundsman.model.scheduler_queues import QueueDepth
from roundsman_testing.memory import MemoryAgentBoard
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import answered, error, unreachable
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value


@dataclass
class Clock:
    now: int = NOW

    def __call__(self) -> int:
        return self.now


def test_of_queues_that_were_never_read_nothing_is_known(world: World) -> None:
    board, _ = world.board(Clock())
    assert board.agents() == {}


def test_the_age_of_the_request_last_read_is_the_queues_lag(world: World) -> None:
    board, notes = world.board(Clock())
    notes.note_read("payment", "normal", NOW - 40 * SECOND)
    notes.note_read("payment", "urgent", NOW - SECOND)
    agents = board.agents()
    assert agents["payment/normal"].lag == 40 * SECOND
    assert agents["payment/urgent"].lag == SECOND
    assert agents["payment/normal"].read_up_to == NOW - 40 * SECOND + MARK_UNCERTAINTY


def test_a_mark_is_written_at_most_every_five_seconds_a_queue(world: World) -> None:
    clock = Clock()
    board, notes = world.board(clock)
    notes.note_read("payment", "normal", NOW - 40 * SECOND)
    clock.now = NOW + 5 * SECOND - 1
    notes.note_read("payment", "normal", clock.now - 20 * SECOND)
    assert board.agents()["payment/normal"].lag == 40 * SECOND
    clock.now = NOW + 5 * SECOND
    notes.note_read("payment", "normal", clock.now - 30 * SECOND)
    # The latest that was sent among those read since: 20 s old then, 20.001 s now.
    assert board.agents()["payment/normal"].lag == 20 * SECOND + 1


def test_the_mark_of_an_idle_queue_is_no_news_after_a_minute(world: World) -> None:
    clock = Clock()
    board, notes = world.board(clock)
    notes.note_read("payment", "normal", NOW - 40 * SECOND)
    clock.now = NOW + MINUTE
    assert board.agents()["payment/normal"].lag == 40 * SECOND
    clock.now = NOW + MINUTE + 1
    assert board.agents()["payment/normal"] == AgentView(
        lag=0, read_up_to=NOW + PROMPT_MARK_UNCERTAINTY
    )


def test_another_instances_newer_mark_replaces_an_older_one_but_not_the_other_way(
    dynamo_world: World,
) -> None:
    behind, ahead = Clock(NOW), Clock(NOW + SECOND)
    board, _ = dynamo_world.board(ahead)
    table = dynamo_world.tables.control
    slow = DynamoReadNotes(dynamo_world.client, control_table=table, clock=behind)
    fast = DynamoReadNotes(dynamo_world.client, control_table=table, clock=ahead)
    fast.note_read("payment", "normal", NOW)
    slow.note_read("payment", "normal", NOW - MINUTE)
    assert board.agents()["payment/normal"].lag == SECOND
    ahead.now = behind.now = NOW + 10 * SECOND
    slow.note_read("payment", "normal", NOW + 7 * SECOND)
    assert board.agents()["payment/normal"].lag == 3 * SECOND


def test_the_board_is_read_at_most_every_five_seconds(
    dynamo_world: World,
) -> None:
    clock = Clock()
    table = dynamo_world.tables.control
    board = DynamoAgentBoard(dynamo_world.client, control_table=table, clock=clock)
    assert board.agents() == {}
    dynamo_world.board(clock)[1].note_read("mail", "normal", NOW - SECOND)
    clock.now = NOW + 5 * SECOND - 1
    assert board.agents() == {}
    clock.now = NOW + 5 * SECOND
    assert board.agents()["mail/normal"].lag == SECOND


def test_a_mark_that_cannot_be_written_now_delays_nothing_and_is_written_next(
    moto_world: World,
) -> None:
    board, notes = moto_world.board(Clock())
    with unreachable(moto_world.client, "UpdateItem"):
        notes.note_read("mail", "normal", NOW - SECOND)
    assert board.agents() == {}
    notes.note_read("mail", "normal", NOW - 3 * SECOND)
    assert board.agents()["mail/normal"].lag == SECOND


def test_an_agent_that_may_not_write_marks_is_refused(moto_world: World) -> None:
    _, notes = moto_world.board(Clock())
    with (
        answered(moto_world.client, "UpdateItem", 400, error("AccessDeniedException")),
        pytest.raises(CallRefused, match="mail/normal: AccessDenied"),
    ):
        notes.note_read("mail", "normal", NOW)


NO_MARKS: dict[str, "Value"] = {
    "text": {"S": "now"},
    "empty": {"M": {}},
    "without its time": {"M": {"ReadSentAt": {"N": "1"}}},
    "half text": {"M": {"ReadSentAt": {"S": "soon"}, "ReadAt": {"N": "99999999999999"}}},
    "words": {"M": {"ReadSentAt": {"N": "1"}, "ReadAt": {"S": "soon"}}},
}


@pytest.mark.parametrize("strange", NO_MARKS)
def test_a_mark_that_is_none_is_passed_over_and_the_next_takes_its_place(
    dynamo_world: World, strange: str
) -> None:
    _, notes = dynamo_world.board(Clock())
    notes.note_read("payment", "normal", NOW - SECOND)
    dynamo_world.client.update_item(
        TableName=dynamo_world.tables.control,
        Key={"ControlId": {"S": "marks"}},
        UpdateExpression="SET #queue = :mark",
        ExpressionAttributeNames={"#queue": "mail/normal"},
        ExpressionAttributeValues={":mark": NO_MARKS[strange]},
    )
    reported: list[UnreadableRecord] = []
    table = dynamo_world.tables.control
    board = DynamoAgentBoard(
        dynamo_world.client,
        control_table=table,
        clock=Clock(),
        keep_for=0,
        on_unreadable=reported.append,
    )
    assert set(board.agents()) == {"payment/normal"}, "the others are known"
    assert [problem.record for problem in reported] == ["marks"]
    assert reported[0].field.startswith("mail/normal.")
    notes.note_read("mail", "normal", NOW - 2 * SECOND)
    assert board.agents()["mail/normal"].lag == 2 * SECOND
    assert len(reported) == 1


# --- The queues that the scheduler reads -------------------------------------------------------


def test_the_marks_of_what_the_scheduler_reads_are_apart_from_those_of_the_agents(
    world: World,
) -> None:
    board, notes = world.board(Clock())
    assert board.marks() == {}
    notes.note_read("payment", "normal", NOW - 3 * SECOND)
    notes.note_read("payment", "replies", NOW - 40 * SECOND)
    notes.note_read("payment", "wanted", NOW)
    notes.note_read("scheduler", "commands", NOW - 50 * SECOND)
    assert board.marks() == {
        "payment/replies": ReadMark(NOW - 40 * SECOND, NOW),
        "payment/wanted": ReadMark(NOW, NOW),
        "scheduler/commands": ReadMark(NOW - 50 * SECOND, NOW),
    }
    assert set(board.agents()) == {"payment/normal"}


def test_the_board_itself_stores_what_the_scheduler_and_the_supervisor_note(world: World) -> None:
    board, _ = world.board(Clock())
    board.note_read("payment", "replies", NOW - MINUTE)
    board.note_read("scheduler", "commands", NOW - MINUTE)
    assert set(board.marks()) == {"payment/replies", "scheduler/commands"}
    assert board.agents() == {}


def test_the_board_stores_a_mark_of_a_queue_at_most_every_five_seconds(world: World) -> None:
    clock = Clock()
    board, _ = world.board(clock)
    board.note_read("payment", "replies", NOW - MINUTE)
    clock.now = NOW + 5 * SECOND - 1
    board.note_read("payment", "replies", NOW)
    assert board.marks()["payment/replies"].read_at == NOW
    clock.now = NOW + 5 * SECOND
    board.note_read("payment", "replies", NOW)
    assert board.marks()["payment/replies"] == ReadMark(NOW, clock.now)


def test_of_depths_nothing_is_known_unless_something_reads_them(world: World) -> None:
    board, _ = world.board(Clock())
    assert board.depth("payment/replies") is None


def test_a_depth_is_what_the_function_says_that_reads_it(dynamo_world: World) -> None:
    asked: list[str] = []

    def depth_of(key: str) -> QueueDepth:
        asked.append(key)
        return QueueDepth(3, 1)

    table = dynamo_world.tables.control
    board = DynamoAgentBoard(
        dynamo_world.client, control_table=table, clock=Clock(), depth_of=depth_of
    )
    assert board.depth("payment/replies") == QueueDepth(3, 1)
    assert MemoryAgentBoard(Clock(), depth_of=depth_of).depth("scheduler/commands") == QueueDepth(
        3, 1
    )
    assert asked == ["payment/replies", "scheduler/commands"]


def test_marks_and_agents_are_one_read(moto_world: World) -> None:
    clock = Clock()
    table = moto_world.tables.control
    board = DynamoAgentBoard(moto_world.client, control_table=table, clock=clock)
    assert board.marks() == {}
    moto_world.board(clock)[1].note_read("mail", "replies", NOW - SECOND)
    clock.now = NOW + 5 * SECOND - 1
    assert (board.agents(), board.marks()) == ({}, {}), "what was read is kept"
    clock.now = NOW + 5 * SECOND
    assert set(board.marks()) == {"mail/replies"}
    with unreachable(moto_world.client, "GetItem"):
        assert board.agents() == {}


def test_a_board_that_may_not_write_marks_says_so(moto_world: World) -> None:
    board, _ = moto_world.board(Clock())
    with (
        answered(moto_world.client, "UpdateItem", 400, error("AccessDeniedException")),
        pytest.raises(CallRefused),
    ):
        board.note_read("mail", "wanted", NOW)
