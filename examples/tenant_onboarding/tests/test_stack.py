"""The template on moto: the functions, the queues and the tables as they are deployed."""

from collections.abc import Callable

from roundsman import Json, PermanentError
from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman_testing import TaskState
from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.stack import Stack

Event = Callable[[str], dict[str, Json]]


def token_of_the_review(stack: Stack, services: RemoteServices, event: Event) -> str:
    """Submit a tenant and return the token that the officer's decision must name."""
    stack.submit(event("business"))
    stack.run()
    [review] = services.application.callbacks("business")
    assert isinstance(review, dict)
    return str(review["token"])


def test_an_approved_tenant_is_onboarded(
    roundsman_stack: Stack, roundsman_services: RemoteServices, event: Event
) -> None:
    token = token_of_the_review(roundsman_stack, roundsman_services, event)
    roundsman_stack.send(
        "ComplianceReplyQueue", succeeded_reply(token, {"approvedBy": "officer-7"})
    )
    roundsman_stack.run()
    assert roundsman_stack.task("business").state is TaskState.COMPLETED
    effects = roundsman_stack.effects("business")
    assert effects["accounts perform"] == 5  # the account, and four invitations
    assert effects["billing perform"] == effects["mail perform"] == 1


def test_a_declined_tenant_is_undone(
    roundsman_stack: Stack, roundsman_services: RemoteServices, event: Event
) -> None:
    token = token_of_the_review(roundsman_stack, roundsman_services, event)
    declined = PermanentError("Declined", "the company is on a list of sanctions")
    roundsman_stack.send("ComplianceReplyQueue", failed_reply(token, declined))
    roundsman_stack.run()
    assert roundsman_stack.task("business").state is TaskState.UNDONE
    effects = roundsman_stack.effects("business")
    for service in ("accounts", "databases", "dns", "compliance"):
        assert effects[f"{service} undo"] == 1


def test_the_second_provider_sends_the_welcome_while_the_circuit_of_the_first_is_open(
    roundsman_stack: Stack, event: Event
) -> None:
    roundsman_stack.faults({"operation": "POST /mail", "status": 503})
    roundsman_stack.submit(event("first"))
    roundsman_stack.pass_time(60)  # its calls fail, and open the circuit
    roundsman_stack.submit({**event("first"), "orderId": "second", "subdomain": "second"})
    roundsman_stack.run()
    assert roundsman_stack.task("second").state is TaskState.COMPLETED
    assert roundsman_stack.effects("second")["mail_backup perform"] == 1
    roundsman_stack.faults()
    roundsman_stack.pass_time_until(
        lambda: roundsman_stack.task("first").state is TaskState.COMPLETED, within=300
    )
    assert roundsman_stack.effects("first")["mail perform"] == 1
