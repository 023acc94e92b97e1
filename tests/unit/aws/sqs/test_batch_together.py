"""Messages of a batch about the same thing: handled together, and each done by itself."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from roundsman.aws.sqs.batch import LONGEST_WAIT, Finish, Message
from roundsman.aws.sqs.outgoing import OutgoingMessage
from roundsman.errors import InvalidMessage, Problem, TryAgain
from roundsman_testing.faults import Crash
from tests.support.batch_world import BESIDE, Batch, Queue

OUT = f"{BESIDE.rpartition('/')[0]}/out"


class Groups:
    """A function that handles messages by the first word of their bodies; `-` is for none.

    It sends one message for each group.
    """

    def __init__(self, *bodies: str) -> None:
        self.groups: list[list[str]] = []
        self.ended: list[str] = []
        self.before_ends: Callable[[], None] = lambda: None
        self.fails: dict[str, Exception] = {}
        self.batch = Batch(
            lambda message: None,
            Queue({f"id-{n}": body for n, body in enumerate(bodies)}),
            together=self._handle,
            about=self._about,
        )

    def _about(self, message: Message) -> str | None:
        word = self._word(message)
        return None if word == "-" else word

    def _word(self, message: Message) -> str:
        word = message.body.split()[0]
        if word == "odd":
            raise InvalidMessage([Problem("", "odd")])
        return word

    def _handle(self, messages: Sequence[Message]) -> list[Finish]:
        for message in messages:
            self._word(message)
        found = [message.message_id for message in messages]
        self.groups.append(found)
        self.batch.send_buffer.send(OUT, [OutgoingMessage("+".join(found))])
        self.before_ends()
        return [partial(self._end, message_id) for message_id in found]

    def _end(self, message_id: str) -> None:
        if message_id in self.fails:
            raise self.fails[message_id]
        self.ended.append(message_id)


def test_messages_about_one_thing_are_handled_at_the_place_of_the_first() -> None:
    groups = Groups("a 1", "b 1", "- 1", "a 2", "- 2", "b 2")
    assert groups.batch.invoke() == []
    assert groups.groups == [["id-0", "id-3"], ["id-1", "id-5"], ["id-2"], ["id-4"]]
    assert groups.ended == ["id-0", "id-3", "id-1", "id-5", "id-2", "id-4"]
    assert groups.batch.queue.bodies == {}


def test_a_message_that_cannot_be_read_is_put_aside_by_itself() -> None:
    groups = Groups("a 1", "odd", "a 2")
    assert groups.batch.invoke() == []
    assert groups.groups == [["id-0", "id-2"]]
    assert [sent.body for sent in groups.batch.rejected()] == ["odd"]


def test_a_batch_that_came_before_is_handled_one_by_one() -> None:
    groups = Groups("a 1", "a 2", "a 3")
    groups.batch.queue.receives["id-1"] = 1
    assert groups.batch.invoke() == []
    assert sorted(groups.groups) == [["id-0"], ["id-1"], ["id-2"]]
    assert sorted(groups.batch.queue.deleted) == ["id-0", "id-1", "id-2"]


@pytest.mark.parametrize("failing", ["id-0", "id-1", "id-2"])
def test_a_message_that_fails_does_not_affect_those_of_its_group(failing: str) -> None:
    groups = Groups("a 1", "a 2", "a 3", "b 1")
    groups.fails[failing] = TryAgain("not now")
    assert groups.batch.invoke() == [failing]
    assert set(groups.ended) == {"id-0", "id-1", "id-2", "id-3"} - {failing}


def test_one_that_is_rejected_at_its_end_is_put_aside_by_itself() -> None:
    groups = Groups("a 1", "a 2")
    groups.fails["id-0"] = InvalidMessage([Problem("", "odd")])
    assert groups.batch.invoke() == []
    assert [sent.body for sent in groups.batch.rejected()] == ["a 1"]


@pytest.mark.parametrize(
    "problem", [TryAgain("not now"), ValueError("a defect"), InvalidMessage([])]
)
def test_where_a_group_is_not_handled_none_of_it_is_done(problem: Exception) -> None:
    groups = Groups("a 1", "b 1", "a 2")

    def fail() -> None:
        if groups.groups[-1] == ["id-0", "id-2"]:
            raise problem

    groups.before_ends = fail
    rejected = isinstance(problem, InvalidMessage)
    assert groups.batch.invoke() == (["id-2"] if rejected else ["id-0", "id-2"])
    assert groups.ended == ["id-1"]


def test_what_a_group_sends_is_of_each_of_its_messages() -> None:
    groups = Groups("a 1", "b 1", "a 2")
    groups.batch.queue.refused = {"id-0+id-2": "RequestThrottled"}
    assert groups.batch.invoke() == ["id-0", "id-2"]
    assert groups.batch.queue.did == [("out", "id-1")]
    groups.batch.queue.refused = {}
    assert groups.batch.invoke() == []
    assert groups.groups[2:] == [["id-0"], ["id-2"]], "and they come again one by one"


def test_what_a_group_sends_waits_for_no_other_group_for_longer_than_a_second() -> None:
    groups = Groups("a 1", "b 1", "c 1", "a 2")

    def spend() -> None:
        groups.batch.now += LONGEST_WAIT // 2

    groups.before_ends = spend
    assert groups.batch.invoke() == []
    assert groups.batch.queue.did == [("out", "id-0+id-3", "id-1"), ("out", "id-2")]


def test_a_process_that_dies_in_a_group_loses_nothing() -> None:
    groups = Groups("b 1", "a 1", "a 2")

    def die() -> None:
        if groups.groups[-1] == ["id-1", "id-2"]:
            raise Crash("it dies")

    groups.before_ends = die
    with pytest.raises(Crash):
        groups.batch.invoke()
    assert set(groups.batch.queue.bodies) == {"id-0", "id-1", "id-2"}
    assert groups.batch.invoke() == []
    assert sorted(groups.groups[2:]) == [["id-0"], ["id-1"], ["id-2"]]
    assert groups.batch.queue.bodies == {}


def test_the_same_message_twice_in_a_batch_is_handled_twice() -> None:
    groups = Groups("- 1", "a 1")
    event = groups.batch.queue.event(["id-0", "id-1"])
    records = event["Records"]
    assert isinstance(records, list)
    assert groups.batch.handle_these({"Records": [*records, *records]}) == []
    assert groups.groups == [["id-0"], ["id-1", "id-1"], ["id-0"]]
