"""A bulk run that is broken off, wherever, is carried on, and each order is acted on once."""

import itertools
import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from roundsman.inspector.bulk.run import RunState
from roundsman.inspector.bulk.store import DynamoBulks, Holder, bulks_of
from roundsman.inspector.read.stack import find_stack
from roundsman.model.instants import SECOND, iso
from tests.console.bulk_stories import NO_MAIL, archived, names, states
from tests.console.operators import Operator, at_each_call, document
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS

SEND, STORE = "sqs.SendMessageBatch", "dynamodb.UpdateItem"
GO = ("--go", "--canary", "1", "--rate", "2")


class Killed(BaseException):
    """The process of the command line dies here."""


def bulks() -> DynamoBulks:
    """The runs as stored."""
    return bulks_of(find_stack("roundsman"))


def only_run(operator: Operator) -> str:
    """The id of the one run there is."""
    (record,) = bulks().newest(5)
    return record.run.id


def each_acted_on_once(operator: Operator, count: int) -> None:
    """All of them completed, by one command and with no effect twice."""
    assert states(operator, names(count)) == ["Completed"] * count
    for name in names(count):
        kinds = [row.kind for row in operator.world.store.history(name)]
        assert kinds.count("resubmit") == 1
        assert "refused" not in kinds
        assert operator.world.effects(name) == ALL_EFFECTS


def test_ctrl_c_is_heard_between_two_sends_and_the_run_is_carried_on(operator: Operator) -> None:
    group = archived(operator, 4)
    operator.world.clock.now += 1000

    def ctrl_c() -> None:
        operator.world.run()
        if operator.patience.now > 1:
            os.kill(os.getpid(), signal.SIGINT)

    operator.patience.sleeping = ctrl_c
    before = signal.getsignal(signal.SIGINT)
    result = operator.asks("resubmit", "--group", group, *GO, "--json")
    assert signal.getsignal(signal.SIGINT) is before
    assert result.exit_code == 130
    told = document(result)
    run_id = str(told["runId"])
    assert (told["state"], told["sent"], told["resume"]) == (
        "interrupted",
        3,
        f"roundsman bulk resume {run_id}",
    )
    assert result.stderr.endswith(f"Resume it with: roundsman bulk resume {run_id}\n")
    operator.patience.sleeping = operator.world.run
    after = document(operator.types("bulk", "resume", run_id, "--reason", "back", "--json"))
    assert (after["state"], after["completed"], after["sent"]) == ("finished", 4, 4)
    assert str(after["carriedOn"]).endswith(": back']")
    each_acted_on_once(operator, 4)


def test_a_process_that_dies_before_or_after_a_send_loses_nothing_and_repeats_nothing(
    operator: Operator,
) -> None:
    # The first update lists the run, which is not there yet.
    deaths = [(SEND, 0), (SEND, 1), (STORE, 1), (STORE, 2)]
    for operation, after in deaths:
        operator.world.start_over()
        operator.patience.now = 0.0
        group = archived(operator, 2)
        operator.world.clock.now += 1000
        calls = itertools.count()

        def dies(
            *_: object, calls: Iterator[int] = calls, after: int = after, **__: object
        ) -> None:
            if next(calls) == after:
                raise Killed

        with at_each_call(operation, dies), pytest.raises(Killed):
            operator.asks("resubmit", "--group", group, "--go", "--canary", "1", "--rate", "1")
        run_id = only_run(operator)
        held = operator.types("bulk", "resume", run_id)
        assert held.exit_code == 1
        assert held.stderr.startswith("ops on ")
        assert f" already runs {run_id}; progress was last saved at " in held.stderr
        operator.world.run()
        operator.world.clock.now += 70_000
        result = operator.types("bulk", "resume", run_id, "--json")
        assert result.exit_code == 0, (operation, after, result.stderr)
        told = document(result)
        assert (told["state"], told["completed"], told["sent"]) == ("finished", 2, 2)
        each_acted_on_once(operator, 2)


def test_of_two_who_carry_a_run_on_the_first_sends_nothing_more(operator: Operator) -> None:
    group = archived(operator, 3)
    operator.world.clock.now += 1000

    def another_takes_it() -> None:
        operator.world.run()
        if operator.patience.now == 1:
            record = bulks().load(only_run(operator))
            assert record is not None
            assert bulks().save(replace(record, state=RunState.STOPPED, holder=None))

    operator.patience.sleeping = another_takes_it
    result = operator.asks("resubmit", "--group", group, *GO)
    assert result.exit_code == 1
    assert "this one sends nothing more." in result.stderr
    assert states(operator, names(3)) == ["Completed"] + ["Archived"] * 2
    told = document(operator.types("bulk", "resume", only_run(operator), "--json"))
    assert (told["completed"], told["sent"]) == (3, 3)
    each_acted_on_once(operator, 3)


def test_one_who_was_overtaken_does_not_tell_that_the_run_is_finished(operator: Operator) -> None:
    group = archived(operator, 1)
    operator.world.clock.now += 1000

    def another_takes_it() -> None:
        operator.world.run()
        record = bulks().load(only_run(operator))
        assert record is not None
        assert bulks().save(replace(record, holder=Holder("token", "eve", "desk-3", 2**50)))

    operator.patience.sleeping = another_takes_it
    result = operator.asks("resubmit", "--group", group, "--go", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Another process now runs" in result.stderr
    assert operator.reads("bulk", "show", only_run(operator))["state"] == "running"


def test_the_store_and_the_runner_have_one_clock(operator: Operator) -> None:
    group = archived(operator, 4)
    operator.world.clock.now += 1000
    started = operator.world.clock()
    told = document(operator.asks("resubmit", "--group", group, *GO, "--json"))
    slept = round(operator.patience.now * SECOND)
    assert slept > 0
    assert (told["startedAt"], told["savedAt"]) == (iso(started), iso(started + slept))
    assert operator.world.clock() == started, "the system clock stood still"


def test_a_run_is_stopped_from_elsewhere(operator: Operator) -> None:
    group = archived(operator, 4)
    operator.world.clock.now += 1000

    def asked_to_stop() -> None:
        operator.world.run()
        bulks().ask_stop(only_run(operator), "by eve: not now")

    operator.patience.sleeping = asked_to_stop
    told = document(operator.asks("resubmit", "--group", group, *GO, "--json"))
    assert (told["state"], told["why"]) == ("stopped", "by eve: not now")
    assert told["notReached"] != 0
    run_id = str(told["runId"])
    late = operator.types("bulk", "stop", run_id, "--reason", "now")
    assert (late.exit_code, late.stderr) == (1, f"{run_id} is not running: it is stopped.\n")
    operator.patience.sleeping = operator.world.run
    assert document(operator.types("bulk", "resume", run_id, "--json"))["completed"] == 4
    each_acted_on_once(operator, 4)


def test_a_run_that_nobody_carries_on_is_asked_to_stop_and_can_be_resumed(
    operator: Operator,
) -> None:
    group = archived(operator, 2)

    def dies(**_: object) -> None:
        raise Killed

    with at_each_call("sqs.SendMessageBatch", dies), pytest.raises(Killed):
        operator.asks("resubmit", "--group", group, *GO)
    run_id = only_run(operator)
    told = operator.types("bulk", "stop", run_id, "--reason", "now", "--json")
    assert_schema("bulk-stop", document(told))
    shown = operator.reads("bulk", "show", run_id)
    assert (shown["state"], shown["resume"]) == ("running", None)
    operator.world.clock.now += 70_000
    assert operator.reads("bulk", "show", run_id)["resume"] == f"roundsman bulk resume {run_id}"
    told_so = operator.types("bulk", "show", run_id).stdout
    assert told_so.startswith(
        f"Bulk run {run_id} is running (but its process has not reported since "
    )
    assert document(operator.types("bulk", "resume", run_id, "--json"))["completed"] == 2


def test_an_order_that_moved_on_before_its_command_was_read_is_looked_at_again(
    operator: Operator,
) -> None:
    group = archived(operator, 1)
    world = operator.world
    world.clock.now += 1000

    def moves_on() -> None:
        if operator.patience.now == 1:
            seen = world.task("ord-1")
            world.store.save(replace(seen, version=seen.version + 1), seen=seen.version)
        world.run()

    operator.patience.sleeping = moves_on
    told = document(operator.asks("resubmit", "--group", group, *GO, "--json"))
    assert (told["completed"], told["refused"]) == (1, [])
    kinds = [row.kind for row in world.store.history("ord-1")]
    assert (kinds.count("refused"), kinds.count("resubmit")) == (1, 1)


def test_what_failed_again_while_nobody_carried_the_run_on_is_told_as_that(
    operator: Operator,
) -> None:
    # It dies as soon as the queue has taken the commands, before it can store that it has.
    group = archived(operator, 3)
    operator.world.clock.now += 1000
    sent: list[bool] = []

    def notes(**_: object) -> None:
        sent.append(True)

    def dies(**_: object) -> None:
        if sent:
            raise Killed

    operator.world.faults(NO_MAIL)
    with at_each_call(SEND, notes), at_each_call(STORE, dies), pytest.raises(Killed):
        operator.asks("resubmit", "--group", group, "--go", "--canary", "2", "--stop-at", "100%")
    run_id = only_run(operator)
    operator.world.clock.now += 1000
    operator.world.run()
    assert states(operator, names(3)) == ["Archived"] * 3
    operator.world.faults()
    operator.world.clock.now += 70_000
    told = document(operator.types("bulk", "resume", run_id, "--json"))
    assert (told["failedAgain"], told["completed"], told["sent"]) == (2, 1, 3)
    assert (told["refused"], told["underWay"], told["notReached"]) == ([], 0, 0)
    failures = told["failures"]
    assert isinstance(failures, list)
    assert [(one["group"], one["samples"]) for one in failures] == [(group, names(2))]


def test_what_was_stored_and_never_sent_and_failed_by_another_hand_is_not_lost(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000

    def dies(**_: object) -> None:
        raise Killed

    with at_each_call(SEND, dies), pytest.raises(Killed):
        operator.asks("resubmit", "--group", group, "--go", "--canary", "2", "--stop-at", "100%")
    operator.world.faults(NO_MAIL)
    operator.world.clock.now += 70_000
    assert operator.asks("resubmit", "ord-1").exit_code == 0
    operator.world.run()
    assert operator.world.task("ord-1").state == "Archived"
    operator.world.faults()
    told = document(operator.types("bulk", "resume", only_run(operator), "--json"))
    assert (told["completed"], told["failedAgain"]) == (1, 0)
    assert told["refused"] == [
        {"reason": "it failed again after the run began", "orders": 1, "samples": ["ord-1"]}
    ]
    assert (told["underWay"], told["notReached"], told["state"]) == (0, 0, "finished")


def test_an_order_that_somebody_else_resubmits_meanwhile_is_refused(operator: Operator) -> None:
    group = archived(operator, 2)
    world = operator.world
    world.clock.now += 1000

    def somebody_else() -> None:
        if operator.patience.now == 1:
            world.clock.now += 1000
            world.store.save(
                replace(
                    world.task("ord-2"),
                    version=world.task("ord-2").version + 1,
                    ended_at=world.clock(),
                ),
                seen=world.task("ord-2").version,
            )
        world.run()

    operator.patience.sleeping = somebody_else
    told = document(operator.asks("resubmit", "--group", group, *GO, "--json"))
    assert told["refused"] == [
        {"reason": "it failed again after the run began", "orders": 1, "samples": ["ord-2"]}
    ]


def test_a_queue_that_may_not_be_used_ends_the_run_and_one_that_is_throttled_does_not(
    operator: Operator,
) -> None:
    group = archived(operator, 2)
    operator.world.clock.now += 1000
    codes = iter(["ThrottlingException", "ThrottlingException", "AccessDenied"])

    def refused(**_: object) -> None:
        code = next(codes, None)
        if code:
            raise ClientError({"Error": {"Code": code}}, "SendMessageBatch")

    with at_each_call(SEND, refused):
        broken = operator.asks("resubmit", "--group", group, *GO)
        assert broken.exit_code == 1
        run_id = only_run(operator)
        look, why = broken.stderr.splitlines()
        assert look == f"{run_id} is not finished. See: roundsman bulk show {run_id}"
        assert f"sending commands of {run_id}: AccessDenied" in why
        assert operator.reads("bulk", "show", run_id)["state"] == "interrupted"
        told = document(operator.types("bulk", "resume", run_id, "--json"))
    assert (told["completed"], told["sent"]) == (2, 2)
    each_acted_on_once(operator, 2)


def test_a_command_that_is_carried_out_between_two_reads_is_not_told_as_a_failure(
    operator: Operator,
) -> None:
    group = archived(operator, 3)
    table = operator.world.stack.outputs["HistoryTableName"]
    works = operator.patience.sleeping
    operator.patience.sleeping = lambda: None

    def between(params: dict[str, object], **_rest: object) -> None:
        """The scheduler acts once the tasks have been read, and before a history is."""
        if params["TableName"] == table and operator.patience.sleeping is not works:
            operator.patience.sleeping = works
            operator.patience.sleep(0)

    with at_each_call("dynamodb.Query", between):
        result = operator.asks("resubmit", "--group", group, "--go")
    assert operator.patience.sleeping is works
    assert result.exit_code == 0, result.output
    assert "failed again" not in result.stdout
    assert states(operator, names(3)) == ["Completed"] * 3
