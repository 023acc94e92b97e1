"""An agent notes its calls, or closes their key: of the two, whichever comes first is held."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from roundsman.agents.call_notes import Begun
from roundsman.aws.dynamodb.call_notes import DynamoCallNotes
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import SECOND
from roundsman.model.task import CALL_NOTES_LAST
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import answered, error, first_answer_lost, unreachable
from tests.contract.worlds import World

KEY = "ord-1001/charge_card/perform"
CLAIM, LATER = 5, 8


def clock() -> int:
    return NOW


def test_the_first_call_is_known_from_the_others(world: World) -> None:
    assert world.call_notes(clock).begin(KEY, CLAIM) is Begun.FIRST
    assert world.call_notes(clock).begin(KEY, CLAIM) is Begun.AGAIN
    assert world.call_notes(clock).begin(KEY, LATER) is Begun.AGAIN
    assert world.call_notes(clock).begin(f"{KEY}/2", CLAIM) is Begun.FIRST


def test_no_copy_of_a_request_whose_key_was_closed_may_call(world: World) -> None:
    notes = world.call_notes(clock)
    assert notes.close(KEY, CLAIM, begun=False)
    assert notes.begin(KEY, CLAIM) is Begun.CLOSED
    assert notes.begin(KEY, CLAIM - 1) is Begun.CLOSED
    assert notes.begin(f"{KEY}/2", CLAIM) is Begun.FIRST


def test_a_request_of_a_claim_after_a_closed_one_may_call_and_its_call_is_the_first(
    world: World,
) -> None:
    notes = world.call_notes(clock)
    assert notes.close(KEY, CLAIM, begun=False)
    assert notes.begin(KEY, CLAIM + 1) is Begun.FIRST
    assert notes.begin(KEY, CLAIM) is Begun.CLOSED


def test_where_a_call_was_noted_the_key_is_not_closed(world: World) -> None:
    notes = world.call_notes(clock)
    notes.begin(KEY, CLAIM)
    assert not notes.close(KEY, CLAIM, begun=False)
    assert not notes.close(KEY, LATER, begun=False)
    assert notes.begin(KEY, CLAIM) is Begun.AGAIN


def test_who_made_the_only_call_closes_the_key_where_that_call_had_no_effect(world: World) -> None:
    notes = world.call_notes(clock)
    notes.begin(KEY, CLAIM)
    assert notes.close(KEY, CLAIM, begun=True)
    assert notes.begin(KEY, CLAIM) is Begun.CLOSED
    assert notes.begin(KEY, LATER) is Begun.FIRST, "the call that had no effect is forgotten"


def test_who_called_first_does_not_close_the_key_once_a_second_call_was_noted(
    world: World,
) -> None:
    notes = world.call_notes(clock)
    notes.begin(KEY, CLAIM)
    notes.begin(KEY, CLAIM)
    assert not notes.close(KEY, CLAIM, begun=True)
    assert notes.begin(KEY, CLAIM) is Begun.AGAIN


def test_a_key_is_closed_again_and_further(world: World) -> None:
    notes = world.call_notes(clock)
    assert notes.close(KEY, CLAIM, begun=False)
    assert notes.close(KEY, CLAIM, begun=False)
    assert notes.close(KEY, LATER, begun=False)
    assert notes.begin(KEY, LATER) is Begun.CLOSED


def test_a_copy_of_an_older_request_opens_nothing_that_was_closed_since(world: World) -> None:
    notes = world.call_notes(clock)
    assert notes.close(KEY, LATER, begun=False)
    assert notes.close(KEY, CLAIM, begun=False), "nothing was called, and no such copy will"
    assert notes.begin(KEY, LATER) is Begun.CLOSED


def test_that_a_key_was_closed_for_an_older_claim_proves_nothing_of_a_later_one(
    world: World,
) -> None:
    """The note of the later claim's call is gone, for example by a restore."""
    notes = world.call_notes(clock)
    assert notes.close(KEY, CLAIM, begun=False)
    assert not notes.close(KEY, LATER, begun=True)
    assert notes.begin(KEY, LATER) is Begun.FIRST, "so it was not closed"


def test_a_key_that_was_called_since_it_was_closed_proves_nothing(world: World) -> None:
    notes = world.call_notes(clock)
    notes.close(KEY, CLAIM, begun=False)
    notes.begin(KEY, LATER)
    assert not notes.close(KEY, CLAIM, begun=False)
    assert not notes.close(KEY, LATER, begun=False)
    assert notes.begin(KEY, LATER) is Begun.AGAIN


def test_of_calls_at_once_one_is_the_first(atomic_world: World) -> None:
    def begin(_: int) -> Begun:
        return atomic_world.call_notes(clock).begin(KEY, CLAIM)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(begin, range(8)))
    assert sorted(found, key=str) == [Begun.AGAIN] * 7 + [Begun.FIRST]


def test_a_call_and_a_closing_at_once_never_both_succeed(atomic_world: World) -> None:
    notes = atomic_world.call_notes(clock)

    def race(number: int) -> tuple[Begun, bool]:
        key = f"{KEY}/{number}"
        with ThreadPoolExecutor(2) as pool:
            begun = pool.submit(notes.begin, key, CLAIM)
            closed = pool.submit(lambda: notes.close(key, CLAIM, begun=False))
            return begun.result(), closed.result()

    for outcome in map(race, range(10)):
        assert outcome in ((Begun.FIRST, False), (Begun.CLOSED, True))


def test_two_agents_notes_are_two_rows_that_expire_in_thirty_days(
    dynamo_world: World,
) -> None:
    table = dynamo_world.tables.control
    for agent in ("payment", "mail"):
        notes = DynamoCallNotes(agent, dynamo_world.client, control_table=table, clock=clock)
        assert notes.begin(KEY, CLAIM) is Begun.FIRST
    found = dynamo_world.client.scan(TableName=table)["Items"]
    expires = {"N": str((NOW + CALL_NOTES_LAST) // SECOND)}
    assert sorted(found, key=str) == sorted(
        (
            {"ControlId": {"S": f"calls#{agent}#{KEY}"}, "Calls": {"N": "1"}, "ExpiresAt": expires}
            for agent in ("payment", "mail")
        ),
        key=str,
    )
    assert CALL_NOTES_LAST == 30 * 86_400_000


def test_a_row_that_is_written_again_is_kept_as_long_again(dynamo_world: World) -> None:
    dynamo_world.call_notes(clock).begin(KEY, CLAIM)
    dynamo_world.call_notes(lambda: NOW + 5 * SECOND).close(KEY, CLAIM, begun=True)
    [row] = dynamo_world.client.scan(TableName=dynamo_world.tables.control)["Items"]
    assert row["ExpiresAt"] == {"N": str((NOW + CALL_NOTES_LAST) // SECOND + 5)}


def test_a_note_whose_answer_was_lost_is_not_taken_for_the_first(
    dynamo_world: World,
) -> None:
    notes = dynamo_world.call_notes(clock)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert notes.begin(KEY, CLAIM) is Begun.AGAIN
    assert attempts == [1, 2]
    assert not notes.close(KEY, CLAIM, begun=False)


@pytest.mark.parametrize("begun", [False, True])
def test_a_closing_whose_answer_was_lost_finds_itself(dynamo_world: World, begun: bool) -> None:
    notes = dynamo_world.call_notes(clock)
    if begun:
        notes.begin(KEY, CLAIM)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert notes.close(KEY, CLAIM, begun=begun)
    assert attempts == [1, 2]
    assert notes.begin(KEY, CLAIM) is Begun.CLOSED


def test_notes_that_cannot_be_written_for_now_raise_try_again(moto_world: World) -> None:
    notes = moto_world.call_notes(clock)
    with unreachable(moto_world.client, "UpdateItem"):
        with pytest.raises(TryAgain, match=f"noting a call under {KEY}: ConnectTimeout"):
            notes.begin(KEY, CLAIM)
        with pytest.raises(TryAgain, match=f"closing the key {KEY}: ConnectTimeout"):
            notes.close(KEY, CLAIM, begun=False)


def test_an_agent_that_may_not_write_its_notes_is_refused(moto_world: World) -> None:
    notes = moto_world.call_notes(clock)
    with answered(moto_world.client, "UpdateItem", 400, error("AccessDeniedException")):
        with pytest.raises(CallRefused, match=f"{KEY}: AccessDenied"):
            notes.begin(KEY, CLAIM)
        with pytest.raises(CallRefused, match=f"{KEY}: AccessDenied"):
            notes.close(KEY, CLAIM, begun=False)
