"""Several requests at one call of an agent's function: which replies wait, and for how long."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from botocore.exceptions import ClientError

from roundsman import StepRequest
from tests.support.agent_world import NOW, Aws, World, greet, logged, made_aws, made_world, request
from tests.support.guards import FakeGuard

REPLIES = ("SendMessage", "SendMessageBatch")


@pytest.fixture(scope="module")
def aws(session_without_real_aws: None) -> Iterator[Aws]:
    with made_aws() as found:
        yield found


@dataclass
class Posted:
    """How many replies each request to SQS took, and when it was made."""

    world: World
    found: list[tuple[int, int]] = field(default_factory=list)

    def look(self, params: dict[str, list[object]], event_name: str, **_: object) -> None:
        if event_name.rpartition(".")[2] in REPLIES:
            took = len(params.get("Entries", [params]))
            self.found.append((took, self.world.clock.now - NOW))


@pytest.fixture
def world(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with made_world(aws, monkeypatch) as found:
        yield found


@pytest.fixture
def posted(world: World) -> Iterator[Posted]:
    found = Posted(world)
    world.sqs.meta.events.register("provide-client-params.sqs.*", found.look)
    yield found
    world.sqs.meta.events.unregister("provide-client-params.sqs.*", found.look)


def takes(world: World, *spans: int) -> None:
    """Let each attempt take so many ms, in turn."""
    left = iter(spans)

    @world.agent.performs(greet)
    def slow(_: StepRequest) -> None:
        world.clock.now += next(left)


def asked(count: int, **changes: object) -> list[str]:
    return [request(task_id=f"ord-{n}", **changes) for n in range(count)]


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_replies_of_quick_attempts_are_one_request(
    world: World, posted: Posted, count: int
) -> None:
    takes(world, *[5] * count)
    assert world.handle(*asked(count)) == []
    assert posted.found == [(count, 5 * count)]
    assert {reply.task_id for reply in world.replies()} == {f"ord-{n}" for n in range(count)}


def test_no_reply_waits_for_more_than_one_attempt_beyond_a_tenth_of_a_second(
    world: World, posted: Posted
) -> None:
    takes(world, 300, 300, 300, 300, 300)
    world.handle(*asked(5))
    # Each waits for the attempt after it, and is then too old to wait for another.
    assert posted.found == [(2, 600), (2, 1_200), (1, 1_500)]


def test_a_reply_does_not_wait_for_an_attempt_that_may_outlast_its_complete_by(
    world: World, posted: Posted
) -> None:
    takes(world, 10, 10)
    world.handle(request(complete_by=NOW + 5_000), request(complete_by=NOW + 300_000))
    assert posted.found == [(1, 10), (1, 20)]


@pytest.mark.parametrize(("waited", "requests"), [(700, 1), (800, 2)])
def test_a_reply_does_not_wait_until_it_is_asked_for_though_its_request_ends_later(
    world: World, posted: Posted, waited: int, requests: int
) -> None:
    """The next attempt has 30 s, less one to be heard; the first is asked for after 30 s."""
    takes(world, 10, 10)
    sent_at = NOW - waited
    world.handle(*asked(2, sent_at=sent_at, complete_by=sent_at + 11 * 30_000))
    assert len(posted.found) == requests


def test_a_reply_that_waited_beyond_its_complete_by_is_never_sent(
    world: World, posted: Posted, capsys: pytest.CaptureFixture[str]
) -> None:
    takes(world, 10, 31_000)  # the second hangs on beyond all that it was given
    first, second = asked(2)
    assert world.handle(first, second) == []
    assert posted.found == []
    lines = [line for line in logged(capsys) if line["message"] == "silent"]
    assert [line["task_id"] for line in lines] == ["ord-1", "ord-0"]
    assert lines[1]["lateness_ms"] == 1_010
    assert (lines[1]["step"], lines[1]["attempt"]) == ("greet", 2)


def test_a_sign_of_progress_takes_the_replies_along(world: World, posted: Posted) -> None:
    @world.agent.performs(greet)
    def reports(given: StepRequest) -> None:
        world.clock.now += 50
        if given.task_id == "ord-1":
            given.progress("page 3")

    world.handle(*asked(1), request(task_id="ord-1", heartbeat_by=NOW + 9_000))
    assert posted.found == [(1, 100), (1, 100), (1, 100)]


def test_a_reply_of_a_step_with_heartbeats_waits_for_no_attempt(
    world: World, posted: Posted
) -> None:
    """It would be overdue at its next heartbeat, and be attempted once more for its neighbour."""
    takes(world, 10, 20_000)
    world.handle(request(heartbeat_by=NOW + 9_000), request())
    assert posted.found == [(1, 10), (1, 20_010)]


def test_a_request_that_is_put_aside_keeps_no_reply_waiting_too_long(
    world: World, posted: Posted
) -> None:
    takes(world, 10, 10)
    assert world.handle(request(), "not json", request()) == []
    assert posted.found == [(1, 10), (2, 20)], "the rejection, then both replies"


class Alerter(FakeGuard):
    """A guard that has an alert to send after each call, and takes its time."""

    def __init__(self, world: World, posted: Posted) -> None:
        self.world, self.posted = world, posted
        self.sent_before: list[int] = []

    def publish_alerts(self) -> None:
        self.sent_before.append(len(self.posted.found))


def test_the_last_reply_is_sent_before_any_alert(world: World, posted: Posted) -> None:
    takes(world, 10, 10)
    alerter = Alerter(world, posted)
    world.guard = alerter
    world.handle(request())
    assert alerter.sent_before == [1]


def test_a_reply_that_is_not_accepted_brings_only_its_request_again(world: World) -> None:
    takes(world, 10, 10, 10)

    def not_the_second(parsed: dict[str, list[dict[str, object]]], **_: object) -> None:
        parsed["Successful"] = [each for each in parsed["Successful"] if each["Id"] != "1"]
        parsed["Failed"] = [{"Id": "1", "Code": "InternalError", "SenderFault": False}]

    def nor_by_itself(**_: object) -> None:
        raise ClientError({"Error": {"Code": "RequestThrottled"}}, "SendMessage")

    events = world.sqs.meta.events
    events.register("after-call.sqs.SendMessageBatch", not_the_second)
    events.register("provide-client-params.sqs.SendMessage", nor_by_itself)
    try:
        assert world.handle(*asked(3)) == ["m1"]
    finally:
        events.unregister("after-call.sqs.SendMessageBatch", not_the_second)
        events.unregister("provide-client-params.sqs.SendMessage", nor_by_itself)
