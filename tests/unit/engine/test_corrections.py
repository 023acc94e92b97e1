"""Corrections: what may change, which steps get a new key, and the input of each request."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Undo
from roundsman.engine.corrections import CORRECTIONS_LIMIT
from roundsman.model.corrections import LARGEST_INPUT, Change, changes_json
from roundsman.model.events import Outcome, Resubmit
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError, StepRecord
from roundsman.wire.messages import AgentRequest
from tests.support.machine_world import T0, World, begun, plan, step
from tests.support.operator_stories import FENCED, HOUR, ONCE, refusal
from tests.support.steps import step_record

ORDER: dict[str, Json] = {
    "orderId": "ord-1",
    "token": "old",
    "address": {"city": "Ghent"},
    "lines": [{"sku": "a"}, {"sku": "b"}],
}
TOKEN = Change(("token",), "new")


def refused(
    *, reads: tuple[str, ...] | None = None, used: tuple[str, ...] | None = ("lines",)
) -> World:
    """`a` is done and has read `used`; `b` was refused without effect; the task is Archived."""
    a = step("a", compensation=FENCED, reads=used)
    b = step("b", a, retry=ONCE, reads=reads)
    world = begun(a, b, step("c", b), order=ORDER)
    world.succeeds("a")
    no_effect(world, "b")
    return world


def no_effect(world: World, name: str) -> None:
    error = StepError("Refused", "no")
    world.reply(name, Outcome.PERMANENT, error=error, effect=Effect.NONE)


def request(world: World, name: str) -> AgentRequest:
    return world.request(name)


def test_a_failed_step_goes_on_with_the_corrected_input_under_a_new_key() -> None:
    world = refused()
    decision = world.correct(TOKEN)
    assert decision.history[-1].reason == "resubmit by ann; corrected token"
    assert world.task.corrections == ((TOKEN,),)
    world.start()
    again = request(world, "b")
    assert again.input == {**ORDER, "token": "new"}
    assert again.idempotency_key == "ord-1/b/perform/2"
    world.succeeds("b")
    world.start()
    assert request(world, "c").input == again.input
    assert request(world, "c").idempotency_key == "ord-1/c/perform"


def test_no_value_is_in_the_reason_or_in_the_history() -> None:
    world = refused()
    decision = world.correct(Change(("token",), "tok_secret"))
    texts = [decision.reason, *(row.reason for row in decision.history)]
    assert not any("tok_secret" in text or "old" in text for text in texts)


def test_a_step_that_may_have_had_its_effect_is_undone_with_its_own_input_first() -> None:
    a = step("a", compensation=FENCED, retry=ONCE)
    world = begun(a, order=ORDER)
    world.is_refused("a")
    world.correct(TOKEN)
    world.start()
    undo = request(world, "a")
    assert (undo.operation, undo.input, undo.perform_key) == ("undo", ORDER, "ord-1/a/perform")
    world.succeeds("a")
    again = request(world, "a")
    assert again.input == {**ORDER, "token": "new"}
    assert again.idempotency_key == "ord-1/a/perform/2"


def test_a_step_that_nothing_can_undo_is_corrected_once_a_person_says_it_did_not_happen() -> None:
    world = begun(step("a", retry=ONCE), order=ORDER)
    world.is_refused("a")
    assert refusal(world, lambda: world.correct(TOKEN)).startswith(
        "a: it may have had its effect under its key, and has no compensation"
    )
    assert "a copy of its request may act" in refusal(
        world, lambda: world.correct(TOKEN, not_done=("a",))
    )
    world.wait(HOUR)
    world.correct(TOKEN, not_done=("a",))
    world.start()
    assert request(world, "a").idempotency_key == "ord-1/a/perform/2"


def test_what_has_happened_cannot_be_stated_as_not_done() -> None:
    world = begun(step("a", retry=ONCE), order=ORDER)
    lock = world.lock("a")
    world.is_refused("a")
    world.succeeds("a", lock=lock)
    world.wait(HOUR)
    sentence = refusal(world, lambda: world.correct(TOKEN, not_done=("a",)))
    assert sentence.startswith("a: it has had its effect under its key")


def test_not_done_is_about_a_step_that_goes_on_under_a_fresh_key() -> None:
    world = refused()
    world.wait(HOUR)
    sentence = refusal(world, lambda: world.apply(Resubmit(world.asked(), not_done=("b",))))
    assert sentence == "`notDone` needs a fresh key or a correction"
    done = refusal(world, lambda: world.correct(TOKEN, not_done=("a",)))
    assert done == "a is Processed: it cannot be resubmitted as not done"
    unsent = refusal(world, lambda: world.correct(TOKEN, not_done=("c",)))
    assert unsent == "c is Pending: it cannot be resubmitted as not done"


def test_a_step_that_waited_for_its_next_attempt_gets_a_new_key_too() -> None:
    """It did not fail for good, but was sent with the input as it was."""
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", retry=ONCE), order=ORDER)
    world.fails("a")
    no_effect(world, "b")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("a") is ProcessState.PENDING
    world.correct(TOKEN)
    assert world.state("a") is ProcessState.UNDOING
    world.start()
    assert request(world, "a").input == ORDER
    world.succeeds("a")
    assert request(world, "a").idempotency_key == "ord-1/a/perform/2"
    assert request(world, "a").input == request(world, "b").input


def test_what_a_finished_step_has_used_changes_only_if_the_operator_says_so() -> None:
    world = refused(used=None)
    sentence = refusal(world, lambda: world.correct(TOKEN))
    assert sentence == "token was used by a: set `used` to change it nevertheless"
    decision = world.correct(TOKEN, used=True)
    reason = "resubmit by ann; corrected token (token was used by a)"
    assert decision.history[-1].reason == reason
    world.start()
    world.wait(1).is_refused("b")
    world.ask_undo()
    world.start()
    assert request(world, "a").input == ORDER, "an undo has the input of its perform"


def test_a_step_that_does_not_read_the_field_keeps_its_key_and_gets_what_it_reads() -> None:
    world = refused(reads=("lines",))
    assert request_fields(world) == set()
    world.correct(TOKEN)
    world.start()
    again = request(world, "b")
    assert again.idempotency_key == "ord-1/b/perform"
    assert again.input == {"orderId": "ord-1", "lines": [{"sku": "a"}, {"sku": "b"}]}
    assert request_fields(world) == {"b"}


def request_fields(world: World) -> set[str]:
    return {name for name, record in world.task.steps.items() if record.under_way}


@pytest.mark.parametrize("path", [("address",), ("address", "city")])
def test_a_condition_that_was_evaluated_has_used_the_fields_it_names(
    path: tuple[str, ...],
) -> None:
    a = step("a", when="input.address.city == 'Ghent'", reads=())
    world = begun(a, step("b", a, retry=ONCE, reads=()), order=ORDER)
    world.succeeds("a")
    no_effect(world, "b")
    change = Change(path, "Bruges")
    assert "was used by a" in refusal(world, lambda: world.correct(change))
    world.correct(Change(("address", "street"), "Main St"))


def test_a_condition_that_could_not_be_evaluated_is_evaluated_with_the_correction() -> None:
    a = step("a", when="length(input.token) > `2`", on_failure=Archive())
    world = begun(a, order={"token": 1})
    assert world.record("a").error is not None
    world.correct(TOKEN)
    world.start()
    assert request(world, "a").input == {"token": "new"}
    assert request(world, "a").idempotency_key == "ord-1/a/perform"


def fanned_out() -> World:
    """Item 0 is done, item 1 was refused without effect."""
    pick = step("pick", for_each="input.lines", retry=ONCE, reads=())
    world = begun(pick, order=ORDER)
    world.succeeds("pick[0]")
    no_effect(world, "pick[1]")
    return world


def test_an_item_is_corrected_and_its_number_is_not() -> None:
    world = fanned_out()
    fixed = Change(("lines", 1, "sku"), "c")
    assert refusal(world, lambda: world.correct(fixed)) == (
        "lines[1].sku was used by pick: set `used` to change it nevertheless"
    )
    more = Change(("lines", 2), {"sku": "d"})
    assert refusal(world, lambda: world.correct(more, used=True)) == (
        "pick has 2 items, and would have 3: the number of items cannot be corrected once it is "
        "known"
    )
    none = Change(("lines",), "none")
    assert "no list of items" in refusal(world, lambda: world.correct(none, used=True))
    world.correct(fixed, used=True)
    world.start()
    assert request(world, "pick[1]").item == {"sku": "c"}
    assert request(world, "pick[1]").idempotency_key == "ord-1/pick[1]/perform/2"


def test_an_undone_task_begins_again_with_the_corrected_input() -> None:
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", a, retry=ONCE), on_failure=Undo(), order=ORDER)
    world.succeeds("a")
    no_effect(world, "b")
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert "set `again`" in refusal(world, lambda: world.correct(TOKEN))
    world.correct(TOKEN, again=True)
    world.start()
    again = request(world, "a")
    assert again.idempotency_key == "ord-1/a/perform/2"
    assert again.input == {**ORDER, "token": "new"}


def test_a_task_that_is_being_undone_is_not_corrected() -> None:
    world = refused()
    world.ask_undo()
    world.start()
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    sentence = refusal(world, lambda: world.correct(TOKEN))
    assert sentence == "the task is being undone: an undo has the input of its step"


def test_a_second_correction_changes_the_corrected_input() -> None:
    world = refused()
    world.correct(TOKEN)
    world.start()
    no_effect(world, "b")
    same = refusal(world, lambda: world.correct(TOKEN))
    assert same == "the correction changes nothing: the input has these values"
    world.correct(Change(("note",), "call"), Change(("token",), "newer"))
    world.start()
    fixed = {**ORDER, "token": "newer", "note": "call"}
    assert request(world, "b").input == fixed
    assert request(world, "b").idempotency_key == "ord-1/b/perform/3"


def test_a_copy_of_an_old_request_does_not_settle_the_corrected_step() -> None:
    world = refused()
    old = world.task.step("b")
    world.correct(TOKEN)
    world.start()
    world.reply("b", Outcome.SUCCEEDED, lock=old.locked_by or "x.1.1", key="ord-1/b/perform")
    assert world.state("b") is ProcessState.PROCESSING


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change(("orderId",), "x"), "orderId cannot be corrected: it is not part of the input"),
        (Change(("lines", 7, "sku"), "x"), "there is no field lines[7].sku"),
        (Change(("nothing",), removed=True), "there is no field nothing"),
        (Change(("note",), "x" * LARGEST_INPUT), f"at most {LARGEST_INPUT} are allowed"),
        (Change(("note",), "x" * CORRECTIONS_LIMIT), f"at most {CORRECTIONS_LIMIT} fit in its"),
    ],
)
def test_a_correction_that_cannot_be_made_is_refused(change: Change, message: str) -> None:
    world = refused()
    assert message in refusal(world, lambda: world.correct(change))


def test_a_correction_that_is_nested_too_deep_is_refused() -> None:
    deep: Json = "end"
    for _ in range(20):
        deep = [deep]
    world = refused()
    sentence = refusal(world, lambda: world.correct(Change(("note",), deep)))
    assert sentence == "the corrected input is nested deeper than 20 levels"


def test_a_task_that_ran_out_of_time_is_corrected_without_a_new_key_where_none_was_used() -> None:
    world = World(plan(step("a"), complete_within=timedelta(minutes=1)), order=ORDER)
    world.wait(61).start()
    assert world.task_state() is TaskState.ARCHIVED
    world.correct(TOKEN)
    world.start()
    assert request(world, "a").idempotency_key == "ord-1/a/perform"
    assert request(world, "a").input != ORDER


def test_a_step_keeps_the_input_of_its_key_when_the_input_is_corrected_again() -> None:
    world = refused(reads=("lines",))
    world.correct(Change(("lines",), [{"sku": "z"}]), used=True)
    assert (world.record("b").round, world.record("b").corrections) == (2, 1)
    world.start()
    no_effect(world, "b")
    world.correct(TOKEN)
    world.start()
    assert world.record("b").corrections == 1


def test_a_step_that_begins_at_another_agent_keeps_the_input_of_its_key() -> None:
    a = step("a", agents=("x", "y"), compensation=FENCED, retry=ONCE, reads=("lines",))
    world = begun(a, step("b", retry=ONCE), order=ORDER)
    world.fails("a")
    world.start()
    no_effect(world, "b")
    world.succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert (world.record("a").tried, world.record("a").started_at) == (("x",), None)
    world.correct(TOKEN)
    world.start()
    assert world.record("a").under_way
    assert world.record("a").corrections == 0


# --- What was used, by records as they are stored ----------------------------------------------


def with_records(world: World, **records: StepRecord) -> World:
    world.task = replace(world.task, steps={**world.task.steps, **records})
    return world


@pytest.mark.parametrize(
    "record",
    [
        step_record(held_since=T0, complete_by=T0),
        step_record(not_before=T0, complete_by=T0),
        step_record(tried=("other",), complete_by=T0),
        step_record(process_state=ProcessState.SKIPPED, finished_at=T0),
    ],
)
def test_a_condition_is_evaluated_once(record: StepRecord) -> None:
    gate = step("gate", when="input.token == 'old'", reads=(), agents=("worker", "other"))
    world = begun(gate, step("b", retry=ONCE), order=ORDER)
    no_effect(world, "b")
    world.is_refused("gate")
    with_records(world, gate=record)
    sentence = refusal(world, lambda: world.correct(TOKEN))
    assert sentence == "token was used by gate: set `used` to change it nevertheless"


def test_a_step_that_was_skipped_has_used_only_what_its_condition_names() -> None:
    gate = step("gate", when="input.token == 'none'")
    world = begun(gate, step("b", gate, retry=ONCE), order=ORDER)
    assert world.state("gate") is ProcessState.SKIPPED
    no_effect(world, "b")
    world.correct(Change(("note",), "x"))


def test_an_item_that_was_left_out_and_may_have_happened_has_used_the_input() -> None:
    pick = step("pick", for_each="input.lines", retry=ONCE, tolerate=1, reads=("token",))
    world = begun(pick, step("b", retry=ONCE, reads=()), order=ORDER)
    world.is_refused("pick[0]")
    assert world.state("pick[0]") is ProcessState.SKIPPED
    no_effect(world, "b")
    world.reply("pick[1]", Outcome.PERMANENT, error=StepError("No", "no"), effect=Effect.NONE)
    assert world.task_state() is TaskState.ARCHIVED
    assert "token was used by pick" in refusal(world, lambda: world.correct(TOKEN))
    world.correct(Change(("address", "city"), "Bruges"))


def test_one_finished_item_has_used_what_all_items_read() -> None:
    pick = step("pick", for_each="input.lines", retry=ONCE, reads=("token",))
    world = begun(pick, order=ORDER)
    world.succeeds("pick[0]")
    no_effect(world, "pick[1]")
    assert "token was used by pick" in refusal(world, lambda: world.correct(TOKEN))


def test_items_that_are_known_have_used_their_list_and_their_condition() -> None:
    pick = step("pick", for_each="input.lines", when="input.token == 'old'", reads=())
    world = begun(pick, step("b", retry=ONCE, reads=()), order=ORDER)
    no_effect(world, "b")
    for name in ("pick[0]", "pick[1]"):
        no_effect(world, name)
    world.task = replace(world.task, steps={"b": world.task.step("b")}, fan_outs={"pick": 2})
    fixed = Change(("lines", 0, "sku"), "x")
    assert "lines[0].sku was used by pick" in refusal(world, lambda: world.correct(fixed))
    assert "token was used by pick" in refusal(world, lambda: world.correct(TOKEN))


def test_a_list_of_items_that_was_not_read_yet_may_get_another_length() -> None:
    a = step("a", retry=ONCE, reads=())
    world = begun(a, step("pick", a, for_each="input.lines", reads=()), order=ORDER)
    no_effect(world, "a")
    world.correct(Change(("lines", 2), {"sku": "c"}))
    world.start()
    world.succeeds("a")
    world.start()
    assert world.task.fan_outs == {"pick": 3}
    assert request(world, "pick[2]").item == {"sku": "c"}


def test_a_condition_on_a_result_has_used_no_field_of_that_name() -> None:
    a = step("a", reads=())
    gate = step("gate", a, when="results.a.ok", reads=())
    world = begun(a, gate, step("b", gate, retry=ONCE), order={**ORDER, "a": 1})
    world.succeeds("a", {"ok": True})
    world.succeeds("gate")
    no_effect(world, "b")
    world.correct(Change(("a",), 2))


def test_an_undone_task_that_begins_again_has_used_nothing() -> None:
    pick = step("pick", for_each="input.lines", when="input.token", compensation=FENCED)
    world = begun(pick, step("b", pick, retry=ONCE), on_failure=Undo(), order=ORDER)
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    no_effect(world, "b")
    world.start()
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    assert world.task_state() is TaskState.UNDONE
    world.correct(TOKEN, Change(("lines", 2), {"sku": "c"}), again=True)
    world.start()
    assert world.task.fan_outs == {"pick": 3}


def test_a_cancelled_task_begins_again_with_the_corrected_input() -> None:
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", a), order=ORDER)
    world.cancel()
    world.start()
    world.succeeds("a")
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.CANCELLED
    world.correct(TOKEN, again=True)
    world.start()
    assert request(world, "a").input == {**ORDER, "token": "new"}


# --- Several changes ---------------------------------------------------------------------------


def test_an_earlier_correction_stays() -> None:
    world = refused()
    world.correct(TOKEN)
    world.start()
    no_effect(world, "b")
    world.correct(Change(("note",), "call"))
    world.start()
    assert request(world, "b").input == {**ORDER, "token": "new", "note": "call"}


def test_one_change_of_several_is_enough_for_a_new_key_and_for_another_length() -> None:
    world = refused(reads=("token",))
    world.correct(Change(("note",), "x"), TOKEN)
    world.start()
    assert request(world, "b").idempotency_key == "ord-1/b/perform/2"
    items = fanned_out()
    more = (Change(("note",), "x"), Change(("lines", 2), {"sku": "d"}))
    sentence = refusal(items, lambda: items.correct(*more, used=True))
    assert sentence.startswith("pick has 2 items, and would have 3")


def test_all_changes_of_what_was_used_are_named() -> None:
    world = refused(used=None)
    sentence = refusal(world, lambda: world.correct(TOKEN, Change(("note",), "x")))
    assert sentence == "note, token was used by a: set `used` to change it nevertheless"


@pytest.mark.parametrize(("many", "more"), [(10, ""), (12, " and 2 more")])
def test_at_most_ten_paths_are_named(many: int, more: str) -> None:
    world = refused()
    names = [f"f{number:02}" for number in range(many)]
    decision = world.correct(*(Change((name,), 1) for name in names))
    words = f"corrected {', '.join(names[:10])}{more}"
    assert decision.history[-1].reason == f"resubmit by ann; {words}"


def test_the_fields_of_the_engine_are_named_in_their_order() -> None:
    world = refused()
    changes = [Change((name,), "x") for name in ("processing", "orderId", "cancel")]
    sentence = refusal(world, lambda: world.correct(*changes))
    assert sentence.startswith("cancel, orderId, processing cannot be corrected")


def test_the_limits_themselves_are_allowed() -> None:
    deep: Json = "end"
    for _ in range(19):
        deep = [deep]
    world = refused()
    world.correct(Change(("note",), deep))
    empty = size_in_bytes([changes_json((Change(("note",), ""),))])
    world = refused()
    world.correct(Change(("note",), "x" * (CORRECTIONS_LIMIT - empty)))
    over = refused()
    sentence = refusal(
        over, lambda: over.correct(Change(("note",), "x" * (CORRECTIONS_LIMIT - empty + 1)))
    )
    assert f"would have {CORRECTIONS_LIMIT + 1} bytes" in sentence


def test_the_largest_input_is_allowed() -> None:
    world = refused()
    full: dict[str, Json] = {**ORDER, "token": "new", "pad": ""}
    world.order = {**ORDER, "pad": "x" * (LARGEST_INPUT - size_in_bytes(full))}
    world.correct(TOKEN)
    world.start()
    assert size_in_bytes(request(world, "b").input) == LARGEST_INPUT


# --- Which steps begin under a new key ---------------------------------------------------------


def test_a_step_that_waited_and_did_not_happen_goes_on_at_once() -> None:
    world = begun(step("a"), step("b", retry=ONCE), order=ORDER)
    world.fails("a")
    no_effect(world, "b")
    world.wait(HOUR)
    world.correct(TOKEN, not_done=("a",))
    world.start()
    assert request(world, "a").idempotency_key == "ord-1/a/perform/2"
    assert request(world, "a").input == request(world, "b").input


def test_a_step_that_is_to_begin_at_another_agent_gets_the_corrected_input() -> None:
    a = step("a", agents=("worker", "other"), agent="")
    world = begun(a, step("b", retry=ONCE), order=ORDER)
    world.fails("a")
    no_effect(world, "b")
    moved = step_record(agent="other", tried=("worker",), complete_by=world.now)
    with_records(world, a=moved)
    world.correct(TOKEN)
    world.start()
    assert request(world, "a").idempotency_key == "ord-1/a/perform/2/other"
    assert request(world, "a").input == {**ORDER, "token": "new"}


def test_a_step_that_begins_at_another_agent_after_a_failed_undo_gets_the_corrected_input() -> None:
    once = Compensation(fences_late_performs=True, retry=ONCE)
    a = step("a", agents=("x", "y"), compensation=once, retry=ONCE)
    world = begun(a, on_failure=Archive(), order=ORDER)
    world.fails("a")
    world.start()
    world.is_refused("a")
    assert (world.state("a"), world.task_state()) == (ProcessState.UNDO_ERROR, TaskState.ARCHIVED)
    world.correct(TOKEN)
    world.start()
    assert request(world, "a").input == ORDER
    world.succeeds("a")
    world.start()
    assert request(world, "a").idempotency_key == "ord-1/a/perform/2/y"
    assert request(world, "a").input == {**ORDER, "token": "new"}


def test_a_fresh_key_is_given_without_an_undo_to_what_did_not_happen() -> None:
    world = begun(step("a", retry=ONCE), order=ORDER)
    world.is_refused("a")
    world.wait(HOUR)
    world.apply(Resubmit(world.asked(), fresh_key=True, not_done=("a",)))
    world.start()
    assert request(world, "a").idempotency_key == "ord-1/a/perform/2"


def test_a_word_that_it_did_not_happen_does_not_spare_the_undo_of_a_call_that_may_hang() -> None:
    world = begun(step("a", retry=ONCE, compensation=FENCED), order=ORDER)
    world.is_refused("a")
    world.wait(HOUR)
    world.apply(Resubmit(world.asked(), fresh_key=True, not_done=("a",)))
    assert world.state("a") is ProcessState.UNDOING


def test_a_failed_undo_before_a_new_key_may_be_named() -> None:
    world = begun(step("a", compensation=FENCED, retry=ONCE), order=ORDER)
    world.is_refused("a")
    world.correct(TOKEN)
    world.start()
    world.is_refused("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    world.resubmit("a")
    world.start()
    assert request(world, "a").input == ORDER
    world.succeeds("a")
    assert request(world, "a").input == {**ORDER, "token": "new"}


@pytest.mark.parametrize("items", ["@.input.lines", "@ | input.lines"])
def test_the_number_of_items_is_checked_however_the_list_is_named(items: str) -> None:
    pick = step("pick", for_each=items, retry=ONCE, reads=())
    world = begun(pick, order=ORDER)
    world.succeeds("pick[0]")
    no_effect(world, "pick[1]")
    more = Change(("lines", 2), {"sku": "d"})
    assert "would have 3" in refusal(world, lambda: world.correct(more, used=True))


def test_a_condition_that_names_the_whole_data_has_used_all_of_the_input() -> None:
    a = step("a", when="@.input.token == 'old'", reads=())
    b = step("b", when="length(values(@)) > `0`", reads=())
    world = begun(a, b, step("c", a, b, retry=ONCE, reads=()), order=ORDER)
    world.succeeds("a")
    world.succeeds("b")
    no_effect(world, "c")
    assert "token was used by a, b" in refusal(world, lambda: world.correct(TOKEN))
    assert "note was used by b" in refusal(world, lambda: world.correct(Change(("note",), 1)))
