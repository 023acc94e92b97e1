"""Bulk runs as stored: each write on the version that was read, and all of it read back."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest

from roundsman.aws.dynamodb.bulk_list import listed_work
from roundsman.aws.dynamodb.bulk_runs import KEEP_FOR
from roundsman.errors import TryAgain, UnreadableRecord
from roundsman.model.bulk_run import (
    CHECKED_CHUNK,
    CHUNK,
    BulkRecord,
    InFlightOrder,
    ListedRun,
    OrderGroup,
    OrderNote,
    OrderResult,
    PlannedOrder,
    RequestAction,
    Run,
    RunProgress,
    RunRequest,
    RunState,
    Terms,
)
from roundsman.model.corrections import changes_of
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Extend,
    Move,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
)
from roundsman.ports import BulkRunStore
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import first_answer_lost, unreachable
from tests.contract.test_races import together
from tests.contract.worlds import World
from tests.support.item_size import item_size

ID = "b-1a2b3c4d"
AMY, EVE = "AROAOPERATOR:amy@example.org", "AROAOPERATOR:eve"
ASKED = CommandSource(ID, "amy", "the carrier is back")
FAR = RunProgress(
    reached=7,
    sent=6,
    on_their_way=(
        InFlightOrder("ord-5", to_undo=True, sent=True, tries=2, due=NOW, look_at=NOW + 1, place=5),
        InFlightOrder("ord-6"),
    ),
    ended=((OrderResult.COMPLETED, 3), (OrderResult.FAILED, 1)),
    failed=(OrderGroup("f-00000000", "charge_card: CardDeclined", 1, ("ord-4",)),),
    refused=(OrderGroup("it is *", "it is 5", 1, ("ord-0",)),),
    recent="++-+",
    next_send_at=NOW + 1,
    news_at=NOW,
)


def clock() -> int:
    return NOW


def a_run(event: OperatorEvent | None = None, run_id: str = ID, selected: int = 3) -> Run:
    terms = Terms(2.5, 9, 4, 0.25, 60_000, anyway=True)
    asked = event or Resubmit(ASKED, ("a", "b"), fresh_key=True, again=True)
    return Run(
        run_id, asked, "amy", AMY, "the carrier is back", "--group f-1", NOW, selected, terms
    )


def planned(*orders: str) -> list[PlannedOrder]:
    return [PlannedOrder(one) for one in orders]


def begun(store: BulkRunStore, run: Run | None = None) -> BulkRecord:
    run = run or a_run()
    store.begin(run, planned("ord-1"))
    found = store.load(run.id, AMY)
    assert found is not None
    return found


def request(action: RequestAction = RequestAction.STOP, at: int = NOW) -> RunRequest:
    return RunRequest(action, "eve", EVE, "not now", at)


@pytest.mark.parametrize(
    "event",
    [
        Resubmit(ASKED, ("a", "b"), fresh_key=True, again=True),
        Cancel(ASKED, undo=False),
        Resolve(ASKED, "charge_card", did=False),
        Extend(ASKED, 600, "charge_card"),
        RunNow(ASKED),
        Move(ASKED, "0a" * 32),
    ],
)
def test_a_run_is_read_back_as_it_was_planned(moto_world: World, event: OperatorEvent) -> None:
    run = a_run(event)
    assert begun(moto_world.bulk_runs(clock), run) == BulkRecord(run)
    another = moto_world.bulk_runs(clock)
    assert another.load(ID, AMY) == BulkRecord(run)


def test_progress_is_read_back_as_it_was_stored(world: World) -> None:
    store = world.bulk_runs(clock)
    assert store.load(ID, AMY) is None
    first = store.save(
        replace(begun(store), progress=FAR, carrier="u1", carried_until=NOW + 5, asked_at=NOW)
    )
    assert first is not None
    assert (first.version, first.saved_at) == (1, NOW)
    assert store.load(ID, AMY) == first
    stopped = store.save(
        replace(
            first,
            state=RunState.STOPPED,
            why="enough",
            on_hold=True,
            anyway=True,
            carrier="",
            carried_until=0,
            requests=("stopped by eve",),
        )
    )
    assert stopped is not None
    assert store.load(ID, AMY) == stopped
    resumed = store.save(replace(stopped, why="", on_hold=False, anyway=False, requests=()))
    assert store.load(ID, AMY) == resumed


def test_a_run_is_that_of_its_starter_and_of_nobody_else(world: World) -> None:
    store = world.bulk_runs(clock)
    begun(store)
    assert store.load(ID, EVE) is None


def test_the_plan_is_read_in_its_parts(world: World) -> None:
    store, orders = world.bulk_runs(clock), planned(*(f"ord-{n}" for n in range(CHUNK + 3)))
    run = a_run(selected=len(orders))
    store.begin(run, orders)
    assert store.orders(run, 0, 10) == orders[:10]
    assert store.orders(run, CHUNK - 2, 10) == orders[CHUNK - 2 : CHUNK]
    assert store.orders(run, CHUNK, 10) == orders[CHUNK:]


def test_what_was_checked_of_each_order_is_in_the_plan(world: World) -> None:
    store, count = world.bulk_runs(clock), CHECKED_CHUNK + 4
    run = replace(a_run(selected=count), pins_versions=True)
    changes = changes_of({"lines[0].sku": "b-2"}, ("note",))
    orders = [
        PlannedOrder("ord-1", 7, changes),
        PlannedOrder("ord-2", 3, refused="its input is not valid"),
        PlannedOrder("ord-3"),
        *(PlannedOrder(f"ord-{n}", n) for n in range(4, count + 1)),
    ]
    store.begin(run, orders)
    assert store.orders(run, 0, 3) == orders[:3]
    assert store.orders(run, CHECKED_CHUNK, 100) == orders[CHECKED_CHUNK:]


def test_a_part_of_the_plan_that_is_lost_is_named(dynamo_world: World) -> None:
    store, run = dynamo_world.bulk_runs(clock), a_run()
    store.begin(run, planned("ord-1"))
    with pytest.raises(UnreadableRecord, match=f"bulk-by#{AMY}#{ID}#1 cannot be read: Orders"):
        store.orders(run, CHUNK, 1)


@pytest.mark.parametrize("selected", [2, 4, CHUNK + 1])
def test_a_plan_with_another_number_of_orders_than_it_says_is_named(
    dynamo_world: World, selected: int
) -> None:
    store, run = dynamo_world.bulk_runs(clock), a_run(selected=selected)
    store.begin(run, planned("ord-1", "ord-2", "ord-3"))
    with pytest.raises(UnreadableRecord, match=f"bulk-by#{AMY}#{ID}#0 cannot be read: Orders"):
        store.orders(run, 0, 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"rate": 0.0},
        {"rate": -1.0},
        {"rate": 25.1},
        {"at_once": 0},
        {"at_once": 1_001},
        {"canary": -1},
        {"canary": 101},
        {"stop_at": -0.1},
        {"stop_at": 1.1},
        {"patience": -1},
        {"patience": 24 * 3_600_000 + 1},
    ],
)
def test_a_run_with_limits_that_no_run_may_have_cannot_be_read(
    moto_world: World, changed: Mapping[str, float]
) -> None:
    run = a_run()
    terms = replace(run.terms, **changed)  # type: ignore[arg-type]  # two of the fields are int
    with pytest.raises(UnreadableRecord, match=f"bulk-by#{AMY}#{ID} cannot be read: Run"):
        begun(moto_world.bulk_runs(clock), replace(run, terms=terms))


def test_who_comes_second_stores_nothing(world: World) -> None:
    store = world.bulk_runs(clock)
    new = begun(store)
    first = store.save(replace(new, progress=FAR, carrier="u1"))
    notes = [OrderNote("ord-1", failed=True, reason="no")]
    assert store.save(replace(new, carrier="u2")) is None
    assert store.save(replace(new, carrier="u2"), notes) is None
    assert store.load(ID, AMY) == first
    assert first is not None
    second = store.save(replace(first, progress=RunProgress()))
    assert store.save(replace(first, carrier="u2")) is None
    assert store.load(ID, AMY) == second


@pytest.mark.parametrize("seen", [0, 1])
def test_of_eight_supervisors_exactly_one_stores_the_progress(
    atomic_world: World, seen: int
) -> None:
    store = atomic_world.bulk_runs(clock)
    record = begun(store)
    if seen:
        saved = store.save(record)
        assert saved is not None
        record = saved
    notes = [OrderNote("ord-1", failed=True, reason="no")]
    calls: list[Callable[[], BulkRecord | None]] = [
        partial(store.save, replace(record, carrier=f"u{n}"), notes if n % 2 else ())
        for n in range(8)
    ]
    answers = together(calls)
    assert sorted(answer is not None for answer in answers) == [False] * 7 + [True]


@pytest.mark.parametrize("with_notes", [False, True])
def test_a_write_whose_answer_was_lost_finds_itself(dynamo_world: World, with_notes: bool) -> None:
    store = dynamo_world.bulk_runs(clock)
    notes = [OrderNote("ord-1", failed=True, reason="no")] if with_notes else []
    operation = "TransactWriteItems" if with_notes else "PutItem"
    new = begun(store)
    with first_answer_lost(dynamo_world.client, operation) as attempts:
        saved = store.save(replace(new, progress=FAR, carrier="u1"), notes)
    assert attempts == [1, 2]
    assert saved is not None
    assert saved == store.load(ID, AMY)


def test_every_order_that_failed_again_or_was_refused_is_listed(dynamo_world: World) -> None:
    store = dynamo_world.bulk_runs(clock)
    notes = [
        OrderNote("ord-1", failed=True, reason="mail: NoAddress: \u00e9"),
        OrderNote("ord-2", failed=False, reason="the task is completed"),
        OrderNote("ord-3", failed=True, reason=""),
    ]
    first = store.save(begun(store), notes[:2])
    assert first is not None
    assert first.lists == 1
    second = store.save(first)
    assert second is not None
    third = store.save(second, notes[2:])
    assert third is not None
    assert third.lists == 2
    assert store.notes(third) == notes


def test_a_request_is_read_with_the_principal_that_made_it(world: World) -> None:
    store = world.bulk_runs(clock)
    assert not store.ask(ID, request(), seen=0)
    begun(store)
    [entry] = store.open_runs()
    assert entry == ListedRun(ID, AMY, NOW)
    assert store.request(entry) is None
    assert store.ask(ID, request(at=NOW + 5), seen=0)
    [entry] = store.open_runs()
    assert entry == ListedRun(ID, AMY, NOW, EVE, NOW + 5)
    assert store.request(entry) == request(at=NOW + 5)


def test_a_later_request_is_later_whatever_the_clock_of_the_person(world: World) -> None:
    store = world.bulk_runs(clock)
    begun(store)
    store.ask(ID, request(RequestAction.PAUSE, at=NOW + 60_000), seen=0)
    later = replace(request(RequestAction.RESUME), sender=AMY, by="amy", anyway=True)
    store.ask(ID, later, seen=NOW + 60_000)
    [entry] = store.open_runs()
    assert store.request(entry) == RunRequest(
        RequestAction.RESUME, "amy", AMY, "not now", NOW + 60_001, anyway=True
    )


@pytest.mark.parametrize("asked_before", [0, NOW + 5])
def test_a_request_that_has_not_seen_the_last_one_is_not_stored(
    world: World, asked_before: int
) -> None:
    """A stop that is taken for older than what was carried out, or is replaced, would be lost."""
    store = world.bulk_runs(clock)
    begun(store)
    if asked_before:
        assert store.ask(ID, request(RequestAction.PAUSE, at=asked_before), seen=0)
    seen = asked_before
    by_amy = replace(request(RequestAction.RESUME, at=NOW + 60_000), sender=AMY, by="amy")
    assert store.ask(ID, by_amy, seen=seen)
    [entry] = store.open_runs()
    assert not store.ask(ID, request(), seen=seen)
    assert store.open_runs() == [entry]
    assert store.request(entry) == by_amy
    assert store.ask(ID, request(), seen=entry.asked_at)
    [stopped] = store.open_runs()
    assert store.request(stopped) == request(at=NOW + 60_001)


def test_of_eight_people_who_ask_at_once_exactly_one_is_heard(atomic_world: World) -> None:
    store = atomic_world.bulk_runs(clock)
    begun(store)
    asked = [replace(request(at=NOW + 1), sender=f"AROAOPERATOR:{n}") for n in range(8)]
    heard = together([partial(store.ask, ID, one, seen=0) for one in asked])
    assert heard.count(True) == 1
    assert heard.count(False) == 7
    [entry] = store.open_runs()
    assert entry.asked_by == asked[heard.index(True)].sender


def test_a_request_whose_answer_was_lost_is_heard_once(dynamo_world: World) -> None:
    store = dynamo_world.bulk_runs(clock)
    begun(store)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert store.ask(ID, request(), seen=0)
    assert attempts == [1, 2]
    [entry] = store.open_runs()
    assert store.request(entry) == request()


def test_an_instance_sees_at_one_read_whether_there_is_an_open_run(
    dynamo_world: World,
) -> None:
    client, table = dynamo_world.client, dynamo_world.tables.control
    store = dynamo_world.bulk_runs(clock)
    assert not listed_work(client, table).open_runs
    begun(store)
    assert listed_work(client, table).open_runs
    [entry] = store.open_runs()
    store.close(entry)
    assert not listed_work(client, table).open_runs
    store.ask(ID, request(), seen=0)
    assert listed_work(client, table).open_runs


def test_what_cannot_be_read_is_left_to_the_visit_which_reports_it(moto_world: World) -> None:
    with unreachable(moto_world.client, "GetItem"):
        assert listed_work(moto_world.client, moto_world.tables.control).open_runs


def test_a_closed_run_is_opened_by_a_request(world: World) -> None:
    store = world.bulk_runs(clock)
    begun(store)
    [entry] = store.open_runs()
    store.close(entry)
    assert store.open_runs() == []
    store.ask(ID, request(), seen=0)
    [again] = store.open_runs()
    store.close(entry)
    assert store.open_runs() == [again], "somebody asked since that entry was read"
    store.close(again)
    assert store.open_runs() == []
    assert store.load(ID, AMY) is not None


def test_a_run_that_cannot_be_read_is_reported_and_the_others_are_listed(
    dynamo_world: World,
) -> None:
    store, reported = dynamo_world.bulk_runs(clock), list[UnreadableRecord]()
    for place in range(3):
        run = replace(a_run(run_id=f"b-0000000{place}"), started_at=NOW + place)
        store.begin(run, planned("ord-1"))
    row = f"bulk-by#{AMY}#b-00000001"
    dynamo_world.client.update_item(
        TableName=dynamo_world.tables.control,
        Key={"ControlId": {"S": row}},
        UpdateExpression="SET #run = :odd",
        ExpressionAttributeNames={"#run": "Run"},
        ExpressionAttributeValues={":odd": {"S": "{}"}},
    )
    fresh = dynamo_world.bulk_runs(clock)
    assert [one.run.id for one in fresh.newest(9, reported.append)] == ["b-00000002", "b-00000000"]
    assert [problem.record for problem in reported] == [row]


def test_runs_are_listed_until_they_are_no_longer_kept(dynamo_world: World) -> None:
    store = dynamo_world.bulk_runs(clock)
    for place in range(3):
        run = replace(a_run(run_id=f"b-0000000{place}"), started_at=NOW + place)
        store.begin(run, planned("ord-1"))
    assert [one.run_id for one in store.open_runs()] == ["b-00000000", "b-00000001", "b-00000002"]
    assert [record.run.id for record in store.newest(2)] == ["b-00000002", "b-00000001"]
    late = replace(a_run(run_id="b-0000000a"), started_at=NOW + KEEP_FOR + 2)
    store.begin(late, planned("ord-1"))
    assert [record.run.id for record in store.newest(9)] == ["b-0000000a", "b-00000002"]
    found = store.find("b-0000000a")
    assert found is not None
    assert found == (BulkRecord(late), True)
    assert store.find("b-0000000b") is None


def test_a_run_that_an_earlier_release_listed_is_left_out(moto_world: World) -> None:
    store = moto_world.bulk_runs(clock)
    begun(store)
    moto_world.client.update_item(
        TableName=moto_world.tables.control,
        Key={"ControlId": {"S": "bulk"}},
        UpdateExpression="SET #old = :at, #odd = :odd",
        ExpressionAttributeNames={"#old": "b-00000000", "#odd": "b-00000001"},
        ExpressionAttributeValues={":at": {"N": str(NOW)}, ":odd": {"M": {}}},
    )
    assert [one.run_id for one in store.open_runs()] == [ID]
    store.begin(a_run(run_id="b-00000002"), planned("ord-1"))
    assert len(store.open_runs()) == 2


def test_all_that_is_kept_of_a_run_is_removed_in_the_end(moto_world: World) -> None:
    store = moto_world.bulk_runs(clock)
    store.save(begun(store), [OrderNote("ord-1", failed=True, reason="no")])
    store.ask(ID, request(), seen=0)
    items = moto_world.client.scan(TableName=moto_world.tables.control)["Items"]
    kept = {item["ControlId"]["S"]: item.get("ExpiresAt", {}).get("N") for item in items}
    seconds = str(-(-(NOW + KEEP_FOR) // 1000))
    assert kept == {
        "bulk": None,
        f"bulk-by#{AMY}#{ID}": seconds,
        f"bulk-by#{AMY}#{ID}#0": seconds,
        f"bulk-by#{EVE}#{ID}#request": seconds,
        f"bulk#{ID}": seconds,
        f"bulk#{ID}#0": seconds,
    }


def test_the_record_stays_small(moto_world: World) -> None:
    """At ten orders a second that end within some seconds, 350 are in flight."""
    store = moto_world.bulk_runs(clock)
    order = InFlightOrder("order-2026-000123", sent=True, due=NOW, look_at=NOW, place=12_345)
    progress = replace(FAR, on_their_way=(order,) * 350, recent="+" * 100)
    store.save(replace(begun(store), progress=progress))
    row = f"bulk#{ID}"
    key = {"ControlId": {"S": row}}
    item = moto_world.client.get_item(TableName=moto_world.tables.control, Key=key)["Item"]
    assert item_size(item) < 26 * 1_024


@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"reached": true}'])
@pytest.mark.parametrize(
    ("row", "field"), [(f"bulk#{ID}", "Progress"), (f"bulk-by#{AMY}#{ID}", "Run")]
)
def test_a_record_that_is_none_is_named(moto_world: World, row: str, field: str, text: str) -> None:
    store = moto_world.bulk_runs(clock)
    store.save(begun(store))
    moto_world.client.update_item(
        TableName=moto_world.tables.control,
        Key={"ControlId": {"S": row}},
        UpdateExpression="SET #field = :text",
        ExpressionAttributeNames={"#field": field},
        ExpressionAttributeValues={":text": {"S": text}},
    )
    with pytest.raises(UnreadableRecord, match=f"{row} cannot be read: {field}"):
        moto_world.bulk_runs(clock).load(ID, AMY)


@pytest.mark.parametrize(("row", "field"), [("#0", "Checked"), ("", "Notes")])
def test_a_part_that_cannot_be_read_is_named(moto_world: World, row: str, field: str) -> None:
    store = moto_world.bulk_runs(clock)
    saved = store.save(begun(store), [OrderNote("ord-1", failed=True, reason="no")])
    assert saved is not None
    name = f"bulk-by#{AMY}#{ID}#0" if field == "Checked" else f"bulk#{ID}#0"
    moto_world.client.update_item(
        TableName=moto_world.tables.control,
        Key={"ControlId": {"S": name}},
        UpdateExpression="SET #field = :text",
        ExpressionAttributeNames={"#field": field},
        ExpressionAttributeValues={":text": {"S": "[7]"}},
    )
    with pytest.raises(UnreadableRecord, match=f"{name} cannot be read: {field}"):
        store.orders(a_run(), 0, 1) if field == "Checked" else store.notes(saved)


def test_what_cannot_be_stored_now_is_tried_again(moto_world: World) -> None:
    store = moto_world.bulk_runs(clock)
    new = begun(store)
    with unreachable(moto_world.client, "PutItem"), pytest.raises(TryAgain, match=ID):
        store.save(new)
    with unreachable(moto_world.client, "TransactWriteItems"), pytest.raises(TryAgain, match=ID):
        store.save(new, [OrderNote("ord-1", failed=True, reason="no")])
    with unreachable(moto_world.client, "GetItem"), pytest.raises(TryAgain, match="bulk runs"):
        store.open_runs()


RECORDED_PROGRESS = (
    '{"ended":{"completed":3},"failed":[],"newsAt":5,"nextSendAt":6,'
    '"onTheirWay":[["ord-5",false,true,1,7,8,5]],"reached":6,"recent":"+++","refused":[],"sent":4}'
)


def test_a_run_that_the_first_release_stored_is_read(moto_world: World) -> None:
    """Its rows as they were recorded: what came later is missing in them."""
    store = moto_world.bulk_runs(clock)
    begun(store)
    moto_world.client.put_item(
        TableName=moto_world.tables.control,
        Item={
            "ControlId": {"S": f"bulk#{ID}"},
            "Version": {"N": "4"},
            "State": {"S": "running"},
            "SavedAt": {"N": str(NOW)},
            "Progress": {"S": RECORDED_PROGRESS},
        },
    )
    found = store.load(ID, AMY)
    assert found is not None
    assert (found.version, found.progress.reached, found.carrier, found.lists) == (4, 6, "", 0)
    assert found.progress.on_their_way == (
        InFlightOrder("ord-5", sent=True, due=7, look_at=8, place=5),
    )
    assert store.save(found) is not None
