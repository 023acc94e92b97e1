"""`roundsman agents`: which agents there are, which are held and why, and which are behind."""

from roundsman.aws.dynamodb.control import DynamoReadNotes
from roundsman.model.holds import BREAKER, Hold
from roundsman_console.facts.agent.reading import agent_names
from roundsman_testing.stack import MORNING
from tests.console.operators import Operator, holds_of

TABLE = "ControlTableName"


def lines(operator: Operator) -> list[str]:
    return [line.rstrip() for line in operator.types("agents").stdout.splitlines()]


def test_agents_of_a_stack_at_rest_are_listed(operator: Operator) -> None:
    assert lines(operator) == [
        "Agent      Work   Lag",
        "inventory  taken",
        "mail       taken",
        "payment    taken",
        "shipping   taken",
    ]


def test_agents_shows_who_holds_one_that_its_circuit_is_open_and_how_far_it_is_behind(
    operator: Operator,
) -> None:
    world = operator.world
    held = holds_of(world)
    notes = DynamoReadNotes(
        world.dynamodb, control_table=world.stack.outputs[TABLE], clock=world.clock
    )
    notes.note_read("payment", "normal", MORNING - 42_000)
    notes.note_read("payment", "urgent", MORNING - 1_500)
    assert operator.asks("hold", "payment", "--for", "30m").exit_code == 0
    held.hold(Hold("payment", BREAKER, MORNING, MORNING + 60_000, "5 of 8 failed", "payment"))
    held.hold(Hold("mail", BREAKER, MORNING - 60_000, MORNING, "over", "mail"))
    assert lines(operator) == [
        "Agent      Work          Since     Until     Lag   Why",
        "inventory  taken",
        "mail       taken",
        "payment    circuit open  08:00:00  08:01:00  42 s  5 of 8 failed",
        "           held          08:00:00  08:30:00        ops: routine",
        "shipping   taken",
    ]
    agents = operator.reads("agents")["agents"]
    assert isinstance(agents, list)
    assert agents[2] == {
        "agent": "payment",
        "takesWork": False,
        "hold": {
            "since": "2027-01-15T08:00:00.000Z",
            "until": "2027-01-15T08:30:00.000Z",
            "by": "ops",
            "reason": "routine",
            "passes": [],
        },
        "circuit": {
            "since": "2027-01-15T08:00:00.000Z",
            "until": "2027-01-15T08:01:00.000Z",
            "by": "payment",
            "reason": "5 of 8 failed",
            "passes": [],
        },
        "lag": {"normal": 42.0, "urgent": 1.5},
    }
    assert agents[0] == {
        "agent": "inventory",
        "takesWork": True,
        "hold": None,
        "circuit": None,
        "lag": {},
    }


def test_an_agents_name_is_that_of_its_queues_in_words() -> None:
    outputs = {
        "PaymentRequestQueueUrl": "",
        "PaymentUrgentRequestQueueUrl": "",
        "PaymentBackupRequestQueueUrl": "",
        "PaymentBackupReplyQueueUrl": "",
        "SchedulerQueueUrl": "",
    }
    assert agent_names(outputs, set()) == ["payment", "payment_backup"]


def test_an_agents_name_is_the_one_it_has_noted_where_its_queues_leave_that_open() -> None:
    outputs = {"Mail2RequestQueueUrl": "", "MailRequestQueueUrl": ""}
    assert agent_names(outputs, set()) == ["mail", "mail2"]
    assert agent_names(outputs, {"mail_2", "gone"}) == ["mail", "mail_2"]
