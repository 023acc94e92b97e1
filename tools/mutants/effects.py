"""The guards of effects: what is sent a second time, what user code gets, what is believed."""

from tools.mutants.mutant import Mutant

HTTP = "layers/core/roundsman/agents/http.py"
CONNECTION = "layers/core/roundsman/agents/_http_connection.py"
CALLS = "tests/unit/agents/test_http.py"
OWN = "tests/unit/agents/test_own_request.py"
INPUTS = "tests/unit/submission/test_input_functions.py"

EFFECTS = (
    Mutant(
        name="a-connection-that-was-idle-over-a-freeze-is-replaced",
        file=HTTP,
        old="not self._is_stale(idle) and ",
        new="",
        tests=(
            f"{CALLS}::test_a_connection_that_was_idle_over_a_freeze_is_replaced_before_anything_is_sent_on_it",
        ),
        why="the answer to the first call after a freeze is lost",
    ),
    Mutant(
        name="a-connection-that-was-closed-is-replaced",
        file=HTTP,
        old=" and not idle.connection.has_gone()",
        new="",
        tests=(f"{CALLS}::test_a_connection_that_was_closed_while_idle_is_replaced",),
        why="a call is sent to nobody, and its outcome is unknown",
    ),
    Mutant(
        name="what-follows-an-answer-in-one-piece-is-seen",
        file=CONNECTION,
        old="if self._has_more_data or ",
        new="if ",
        tests=(
            f"{CALLS}::test_what_follows_an_answer_in_one_piece_is_not_taken_for_the_next_answer",
        ),
        why="the rest of one order's answer may be taken for another's",
    ),
    Mutant(
        name="what-was-decrypted-already-is-seen",
        file=CONNECTION,
        old=" and self._socket.pending()",
        new=" and False",
        tests=(
            "tests/unit/agents/test_http_connection.py::test_more_than_the_answer_under_tls_is_not_taken_for_the_next_answer",
        ),
        why="the same, under TLS",
    ),
    Mutant(
        name="each-call-of-a-function-gets-the-request-as-it-was",
        file="layers/core/roundsman/agents/attempt.py",
        old="return function(own_request(request))",
        new="return function(request)",
        tests=(
            f"{OWN}::test_the_second_and_the_third_try_get_what_the_first_one_got",
            f"{OWN}::test_what_a_probe_changes_is_not_given_to_the_function",
            f"{OWN}::test_what_a_function_changes_is_not_given_to_the_probe",
            f"{OWN}::test_the_second_try_of_a_reminder_gets_what_the_first_one_got",
            f"{OWN}::test_a_request_is_as_it_was_after_its_answer",
        ),
        why="another thing is shipped under the same key",
    ),
    Mutant(
        name="an-input-function-gets-an-event-of-its-own",
        file="layers/core/roundsman/submission/events.py",
        old='own = cast("Mapping[str, Json]", copied(given))',
        new="own = given",
        tests=(f"{INPUTS}::test_an_event_has_the_same_hash_at_each_delivery",),
        why="the second delivery of an order is rejected as another order",
    ),
    Mutant(
        name="an-input-function-gets-a-correction-of-its-own",
        file="layers/core/roundsman/submission/corrections.py",
        old='own = cast("Mapping[str, Json]", copied(given))',
        new="own = given",
        tests=(f"{INPUTS}::test_a_correction_sees_what_the_function_changed_in_place",),
        why="a correction leaves computed fields as they were",
    ),
    Mutant(
        name="what-is-stored-is-not-believed-for-ever",
        file="layers/core/roundsman/aws/dynamodb/control.py",
        old="if stored_at is not None and now - stored_at < STORED_FOR:",
        new="if stored_at is not None:",
        tests=(
            "tests/contract/test_plans.py::test_a_plan_that_a_restore_removed_is_stored_again_after_five_minutes",
        ),
        why="after a restore, the orders of a warm instance are archived",
    ),
    Mutant(
        name="a-request-has-seen-the-last-one",
        file="layers/core/roundsman/aws/dynamodb/bulk_runs.py",
        old="ConditionExpression=_nothing_is_asked_since(seen),",
        new='ConditionExpression=IS_LISTED + (" AND #run.AskedAt >= :asked" if seen else ""),',
        tests=(
            "tests/contract/test_bulk_runs.py::test_a_request_that_has_not_seen_the_last_one_is_not_stored",
            "tests/console/bulk/test_bulk.py::test_a_stop_is_heard_although_another_request_comes_between_its_read_and_its_write",
        ),
        why="a person's stop of a bulk run is lost",
    ),
    Mutant(
        name="what-completes-after-the-dry-run-stands",
        file="console/roundsman_console/acts/bulk/dry_run.py",
        old="if completed_by is None or task.ended_at is None or task.ended_at <= completed_by",
        new="if True",
        tests=(
            "tests/console/bulk/test_completed.py::test_the_run_is_over_the_orders_of_its_dry_run_however_late_it_begins",
        ),
        why="a bulk undo takes back an order that nobody saw in its dry run",
    ),
    Mutant(
        name="ages-are-those-of-the-dry-run",
        file="console/roundsman_console/acts/bulk/dry_run.py",
        old="limit=PAGE, budget=PAGE_BUDGET, as_of=as_of)",
        new="limit=PAGE, budget=PAGE_BUDGET)",
        tests=(
            "tests/console/bulk/test_completed.py::test_the_run_is_over_the_orders_of_its_dry_run_however_late_it_begins",
        ),
        why="a bulk undo is over a later span than its dry run, and takes back good orders",
    ),
)
