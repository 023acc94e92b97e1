"""The onboarding of a tenant in memory: each way in which it ends."""

from collections.abc import Callable
from datetime import timedelta

from roundsman import Json, PermanentError
from roundsman.model.states import ProcessState
from roundsman_testing import TaskState, World

Event = Callable[[str], dict[str, Json]]

DECLINED = PermanentError("Declined", "the company is on a list of sanctions")


def at_the_officer(world: World, event: Event) -> str:
    """A tenant of the plan business whose review waits for an officer."""
    order_id = world.submit(event("business"))
    world.run(until=lambda: world.waits_for_answer(order_id, "approve_tenant"))
    world.run(for_=timedelta(minutes=1))
    return order_id


def test_a_trial_needs_no_officer(world: World, event: Event) -> None:
    order_id = world.submit(event("first"))
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.task(order_id).step("approve_tenant").process_state is ProcessState.SKIPPED


def test_a_business_is_onboarded_when_an_officer_approves(world: World, event: Event) -> None:
    order_id = at_the_officer(world, event)
    waiting = world.task(order_id)
    assert waiting.step("provision_database").process_state is ProcessState.PROCESSED
    assert waiting.step("set_up_domain").process_state is ProcessState.PROCESSED
    assert "start_billing" not in waiting.steps
    world.answer(order_id, "approve_tenant", {"approvedBy": "officer-7"})
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.task(order_id).step("approve_tenant").result == {"approvedBy": "officer-7"}


def test_the_officer_is_reminded_each_day_and_no_reminder_is_a_failure(
    world: World, event: Event
) -> None:
    order_id = at_the_officer(world, event)
    world.run(for_=timedelta(days=3))
    assert [each.reminder for each in world.reminders(order_id, "approve_tenant")] == [1, 2, 3]
    assert world.task(order_id).step("approve_tenant").failure_count == 0
    world.answer(order_id, "approve_tenant")
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert len(world.reminders(order_id, "approve_tenant")) == 3


def test_a_reminder_that_cannot_be_sent_changes_nothing(world: World, event: Event) -> None:
    world.on("approve_tenant", "remind").is_down()
    order_id = at_the_officer(world, event)
    world.run(for_=timedelta(days=3))
    world.answer(order_id, "approve_tenant")
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED


def test_a_declined_tenant_is_undone(world: World, event: Event) -> None:
    order_id = at_the_officer(world, event)
    world.answer(order_id, "approve_tenant", error=DECLINED)
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.standing(order_id) == []


def test_a_review_that_nobody_decides_is_opened_again_and_ends_undone(
    world: World, event: Event
) -> None:
    order_id = at_the_officer(world, event)
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.standing(order_id) == []


def test_a_subdomain_that_is_taken_undoes_what_was_done_beside_it(
    world: World, event: Event
) -> None:
    world.on("set_up_domain").refuses("SubdomainTaken")
    order_id = world.submit(event("business"))
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.standing(order_id) == []


def test_a_billing_provider_that_is_down_for_an_hour_delays_the_tenant(
    world: World, event: Event
) -> None:
    world.on("start_billing").is_down()
    order_id = world.submit(event("first"))
    world.run(for_=timedelta(hours=1))
    world.on("start_billing").is_up()
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED


def test_a_billing_provider_that_refuses_the_tenant_undoes_it(world: World, event: Event) -> None:
    world.on("start_billing").refuses("NoSuchAccount")
    order_id = world.submit(event("first"))
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.standing(order_id) == []


def test_a_mistyped_address_does_not_stop_the_other_users(world: World, event: Event) -> None:
    world.on("invite_user[2]").refuses("NoSuchMailbox")
    order_id = at_the_officer(world, event)
    world.answer(order_id, "approve_tenant")
    world.run()
    task = world.task(order_id)
    assert task.state is TaskState.COMPLETED
    assert task.step("invite_user[2]").process_state is ProcessState.SKIPPED
    assert task.step("invite_user[3]").process_state is ProcessState.PROCESSED


def test_too_many_failures_after_billing_wait_for_a_person_and_undo_nothing(
    world: World, event: Event
) -> None:
    for item in (1, 2):
        world.on(f"invite_user[{item}]").refuses("NoSuchMailbox")
    order_id = at_the_officer(world, event)
    world.answer(order_id, "approve_tenant")
    world.run()
    assert world.task(order_id).state is TaskState.ARCHIVED
    assert "start_billing" in world.standing(order_id)
    assert "provision_database" in world.standing(order_id)
    [alert] = world.post.alerts
    assert alert.attributes["step"] == "invite_user"


def test_the_second_provider_sends_the_welcome_while_the_first_is_on_hold(
    world: World, event: Event
) -> None:
    world.hold("mail", timedelta(days=1), "their maintenance")
    order_id = world.submit(event("first"))
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.task(order_id).step("send_welcome").agent == "mail_backup"


def test_a_tenant_may_cancel_while_the_officer_decides(world: World, event: Event) -> None:
    order_id = at_the_officer(world, event)
    world.cancel(order_id)
    world.run()
    assert world.task(order_id).state is TaskState.CANCELLED
    assert world.standing(order_id) == []
