"""The guards of what people read: lists that lose nothing, and cursors that are of their list."""

from tools.mutants.mutant import Mutant

LOOKING = (
    Mutant(
        name="a-start-waits-only-where-messages-wait",
        file="console/roundsman_console/facts/order/step_waits.py",
        old='        if not behind and self.waiting == 0:\n            return ""\n',
        new="",
        tests=(
            "tests/console/test_diagnosis.py::test_a_ready_step_does_not_wait_in_an_empty_queue_or_for_a_start_that_does_not_come",
        ),
        why="an operator looks for a backlog that is none, and the lost Start is found later",
    ),
    Mutant(
        name="only-performs-get-time-back",
        file="console/roundsman_console/facts/order/step_waits.py",
        old="moves = record.operation == PERFORM and self.task.ending is None",
        new="moves = True",
        tests=(
            "tests/console/test_diagnosis.py::test_the_time_of_an_order_that_ends_does_not_move",
        ),
        why="an operator reads that an order gets time which it does not get",
    ),
    Mutant(
        name="a-wish-is-no-read-mark",
        file="console/roundsman_console/facts/overview/queues.py",
        old="for key, mark in marks.items() if is_read_mark(key)}",
        new="for key, mark in marks.items()}",
        tests=(
            "tests/console/test_overview.py::test_the_scheduler_is_behind_by_marks_that_are_in_date_and_are_no_wishes",
        ),
        why="a wish for a mark is shown as a scheduler that is behind",
    ),
    Mutant(
        name="a-backlog-is-listed-once",
        file="console/roundsman_console/facts/alert/standing.py",
        old="if not (behind and one.about in _ALARMS_OF_A_BACKLOG)",
        new="if one",
        tests=(
            "tests/console/test_alerts.py::test_the_alarms_of_the_same_backlog_are_not_listed_again",
        ),
        why="one backlog is three problems",
    ),
    Mutant(
        name="cursor-of-its-own-filter",
        file="console/roundsman_console/facts/orders/cursors.py",
        old="    if of != mark:",
        new="    if False:",
        tests=(
            "tests/console/test_selecting.py::test_a_cursor_of_another_filter_or_stack_is_refused",
        ),
        why="a list goes on in the middle of another, and what is between is never seen",
    ),
    Mutant(
        name="entries-of-one-instant-in-order",
        file="console/roundsman_console/facts/orders/listing.py",
        old="in sorted(alike, key=lambda entry: entry.task_id, reverse=descending):",
        new="in alike:",
        tests=(
            "tests/console/test_selecting.py::test_entries_of_one_instant_are_each_on_one_page",
        ),
        why="of tasks that ended at one instant some are on no page",
    ),
    Mutant(
        name="a-page-has-a-budget",
        file="console/roundsman_console/facts/orders/listing.py",
        old="            if self.looked_at >= self.budget or is_over():\n",
        new="            if is_over():\n",
        also=(("                if many == 0 or left <= 0:\n", "                if many == 0:\n"),),
        tests=(
            "tests/console/test_selecting.py::test_a_rare_filter_gives_a_page_that_says_it_is_partial_and_goes_on",
        ),
        why="a rare filter reads a hundred thousand tasks before it says anything",
    ),
    Mutant(
        name="the-record-not-the-index",
        file="console/roundsman_console/facts/orders/selection.py",
        old="        and selection.group in (None, task.failure)\n",
        new="",
        tests=(
            "tests/console/test_selecting.py::test_a_group_is_found_by_its_index_in_pages_and_by_what_the_records_say_now",
        ),
        why="an order that was resubmitted is acted on once more, by an index that lags",
    ),
    Mutant(
        name="unprocessed-keys",
        file="console/roundsman_console/aws/task_records.py",
        old='wanted = page.get("UnprocessedKeys") or {}',
        new="wanted = {}",
        tests=(
            "tests/contract/test_records.py::test_what_dynamodb_leaves_out_is_asked_for_again_but_not_for_ever",
        ),
        why="a throttled list leaves tasks out and does not say so",
    ),
    Mutant(
        name="a-stopped-export-reports-how-far-it-came",
        file="console/roundsman_console/facts/orders/export.py",
        old="replace(progress, stopped=str(error))",
        new="replace(progress, cursor=after, stopped=str(error))",
        tests=(
            "tests/console/test_exporting.py::test_what_stops_it_loses_no_line_and_repeats_none",
        ),
        why="an export that is carried on writes its lines twice",
    ),
    Mutant(
        name="results-are-not-exported",
        file="console/roundsman_console/facts/orders/export.py",
        old='_without("result", step)',
        new='_without("no such", step)',
        tests=(
            "tests/console/test_exporting.py::test_what_services_answered_is_left_out_unless_asked",
        ),
        why="what services answered leaves the stack unasked",
    ),
)
