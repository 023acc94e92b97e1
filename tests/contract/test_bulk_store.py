"""The records of bulk runs: each write on the version that was read, and all of it read back."""

from dataclasses import replace
from functools import partial

import pytest

from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.inspector.bulk.run import (
    InFlightOrder,
    OrderGroup,
    OrderResult,
    Run,
    RunProgress,
    RunState,
    Terms,
)
from roundsman.inspector.bulk.store import CHUNK, KEEP_FOR, DynamoBulks, Holder
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Extend,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
)
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import first_answer_lost, unreachable
from tests.contract.test_races import together
from tests.contract.worlds import DynamoWorld

ID = "b-1a2b3c4d"
ASKED = CommandSource(ID, "amy", "the carrier is back")
ME = Holder("t-1", "amy", "desk", NOW + 60_000)
FAR = RunProgress(
    reached=7,
    sent=6,
    on_their_way=(InFlightOrder("ord-5", to_undo=True, sent=True, tries=2), InFlightOrder("ord-6")),
    ended=((OrderResult.COMPLETED, 3), (OrderResult.FAILED, 1)),
    failed=(OrderGroup("f-00000000", "charge_card: CardDeclined", 1, ("ord-4",)),),
    refused=(OrderGroup("it is *", "it is 5", 1, ("ord-0",)),),
    recent="++-+",
    next_send_at=NOW + 1,
    news_at=NOW,
)


def a_run(event: OperatorEvent | None = None, run_id: str = ID, selected: int = 3) -> Run:
    terms = Terms(2.5, 9, 4, 0.25, 60_000, anyway=True)
    asked = event or Resubmit(ASKED, ("a", "b"), fresh_key=True, again=True)
    return Run(run_id, asked, "amy", "the carrier is back", "--group f-1", NOW, selected, terms)


def bulks(world: DynamoWorld, now: int = NOW) -> DynamoBulks:
    return DynamoBulks(world.client, control_table=world.tables.control, clock=lambda: now)


@pytest.mark.parametrize(
    "event",
    [
        Resubmit(ASKED, ("a", "b"), fresh_key=True, again=True),
        Cancel(ASKED, undo=False),
        Resolve(ASKED, "charge_card", did=False),
        Extend(ASKED, 600, "charge_card"),
        RunNow(ASKED),
    ],
)
def test_a_run_is_read_back_as_it_was_begun(moto_world: DynamoWorld, event: OperatorEvent) -> None:
    begun = bulks(moto_world).begin(a_run(event), ["ord-1"], ME)
    assert bulks(moto_world).load(ID) == begun


def test_a_run_is_carried_on_where_it_was_left(dynamo_world: DynamoWorld) -> None:
    store = bulks(dynamo_world)
    assert store.load(ID) is None
    begun = store.begin(a_run(), ["ord-1", "ord-2", "ord-3"], ME)
    saved = store.save(replace(begun, progress=FAR))
    assert saved is not None
    assert saved.version == 2
    assert store.load(ID) == saved
    ended = store.save(
        replace(
            saved,
            state=RunState.STOPPED,
            why="enough",
            on_hold=True,
            holder=None,
            carried_on=("eve",),
        )
    )
    assert store.load(ID) == ended
    assert ended is not None
    assert (ended.holder, ended.why, ended.on_hold) == (None, "enough", True)
    resumed = store.save(replace(ended, why="", on_hold=False))
    assert resumed is not None
    assert store.load(ID) == resumed


def test_the_plan_is_read_in_its_parts(dynamo_world: DynamoWorld) -> None:
    store, orders = bulks(dynamo_world), [f"ord-{n}" for n in range(CHUNK + 3)]
    run = store.begin(a_run(selected=len(orders)), orders, ME).run
    assert store.orders(run, 0, 10) == orders[:10]
    assert store.orders(run, CHUNK - 2, 10) == orders[CHUNK - 2 : CHUNK]
    assert store.orders(run, CHUNK, 10) == orders[CHUNK:]
    with pytest.raises(UnreadableRecord, match=f"bulk#{ID}#2"):
        store.orders(run, 2 * CHUNK, 1)


def test_who_comes_second_writes_nothing(dynamo_world: DynamoWorld) -> None:
    store = bulks(dynamo_world)
    begun = store.begin(a_run(), ["ord-1"], ME)
    first = store.save(replace(begun, progress=FAR))
    another = replace(begun, holder=Holder("t-2", "eve", "desk", NOW))
    assert store.save(another) is None
    assert store.save(replace(begun, progress=FAR, holder=None)) is None
    assert store.load(ID) == first


def test_of_eight_who_resume_a_run_exactly_one_has_it(local_world: DynamoWorld) -> None:
    store = bulks(local_world)
    begun = store.begin(a_run(), ["ord-1"], ME)
    wanted = [replace(begun, holder=Holder(f"t-{n}", "amy", "desk", NOW)) for n in range(8)]
    answers = together([partial(store.save, each) for each in wanted])
    assert sorted(answer is not None for answer in answers) == [False] * 7 + [True]


def test_a_write_whose_answer_was_lost_finds_itself(dynamo_world: DynamoWorld) -> None:
    store = bulks(dynamo_world)
    begun = store.begin(a_run(), ["ord-1"], ME)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        saved = store.save(replace(begun, progress=FAR))
    assert attempts == [1, 2]
    assert saved == store.load(ID)
    assert saved is not None


def test_whoever_carries_it_on_learns_that_it_is_to_stop(dynamo_world: DynamoWorld) -> None:
    store = bulks(dynamo_world)
    assert not store.ask_stop(ID, "by eve: now")
    begun = store.begin(a_run(), ["ord-1"], ME)
    assert store.ask_stop(ID, "by eve: now")
    saved = store.save(replace(begun, progress=FAR))
    assert saved is not None
    assert saved.stop_asked == "by eve: now"
    stopped = store.save(replace(saved, state=RunState.STOPPED, holder=None))
    assert not store.ask_stop(ID, "by eve: now")
    assert stopped is not None
    assert stopped.stop_asked == ""
    again = store.save(replace(stopped, state=RunState.RUNNING, holder=ME), fresh=True)
    assert again is not None
    assert again.stop_asked == ""


def test_runs_are_listed_the_newest_first_until_they_are_no_longer_kept(
    dynamo_world: DynamoWorld,
) -> None:
    store = bulks(dynamo_world)
    for place in range(3):
        began = NOW + place
        run = replace(a_run(run_id=f"b-0000000{place}"), started_at=began)
        store.begin(run, ["ord-1"], ME)
    assert [record.run.id for record in store.newest(2)] == ["b-00000002", "b-00000001"]
    late = replace(a_run(run_id="b-0000000a"), started_at=NOW + KEEP_FOR + 2)
    store.begin(late, ["ord-1"], ME)
    assert [record.run.id for record in store.newest(9)] == ["b-0000000a", "b-00000002"]


def test_all_that_is_kept_of_a_run_is_removed_in_the_end(moto_world: DynamoWorld) -> None:
    bulks(moto_world).begin(a_run(), ["ord-1"], ME)
    items = moto_world.client.scan(TableName=moto_world.tables.control)["Items"]
    kept = {item["ControlId"]["S"]: item.get("ExpiresAt", {}).get("N") for item in items}
    seconds = str(-(-(NOW + KEEP_FOR) // 1000))
    assert kept == {"bulk": None, f"bulk#{ID}": seconds, f"bulk#{ID}#0": seconds}


@pytest.mark.parametrize("field", ["Run", "Progress"])
@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"reached": true}'])
def test_a_record_that_is_none_is_named(moto_world: DynamoWorld, field: str, text: str) -> None:
    store = bulks(moto_world)
    store.begin(a_run(), ["ord-1"], ME)
    moto_world.client.update_item(
        TableName=moto_world.tables.control,
        Key={"ControlId": {"S": f"bulk#{ID}"}},
        UpdateExpression="SET #field = :text",
        ExpressionAttributeNames={"#field": field},
        ExpressionAttributeValues={":text": {"S": text}},
    )
    with pytest.raises(UnreadableRecord, match=f"bulk#{ID} cannot be read: {field}"):
        store.load(ID)


def test_what_cannot_be_stored_now_is_tried_again(moto_world: DynamoWorld) -> None:
    store = bulks(moto_world)
    begun = store.begin(a_run(), ["ord-1"], ME)
    with unreachable(moto_world.client, "UpdateItem"), pytest.raises(TryAgain, match=ID):
        store.save(begun)
