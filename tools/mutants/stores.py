"""The guards of what is stored, and of what supervisors do with it."""

from tools.mutants.mutant import Mutant

STORES = (
    Mutant(
        name="version-condition-dynamodb",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='VERSION_IS_AS_SEEN = "attribute_exists(TaskId) AND Version = :seen"',
        new='VERSION_IS_AS_SEEN = "attribute_exists(TaskId) AND Version >= :seen"',
        tests=(
            "tests/contract/test_task_store.py::test_a_decision_on_another_version_changes_nothing[moto-0]",
        ),
        why="two schedulers claim one step",
    ),
    Mutant(
        name="same-task-condition-dynamodb",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='f"{VERSION_IS_AS_SEEN} AND CreatedAt = :created"',
        new='f"{VERSION_IS_AS_SEEN} AND CreatedAt >= :created"',
        tests=(
            "tests/contract/test_task_store.py::test_a_decision_on_another_task_with_that_id_changes_nothing[moto]",
        ),
        why="a kept task is stored over another one that has taken its id",
    ),
    Mutant(
        name="rearm-of-the-same-task",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='f"{TASK_IS_AS_SEEN} AND {STILL_IN_THAT_LANE}"',
        new='f"CreatedAt >= :created AND Version = :seen AND {STILL_IN_THAT_LANE}"',
        tests=(
            "tests/contract/test_task_store.py::test_a_late_write_about_another_task_with_that_id_changes_nothing[moto]",
        ),
        why="the due entry of another task with the same id is moved",
    ),
    Mutant(
        name="removal-of-the-same-task",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='"ConditionExpression": f"{TASK_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",',
        new=(
            '"ConditionExpression": '
            'f"Version = :seen AND CreatedAt >= :created AND {SOMETHING_IS_OWED}",'
        ),
        tests=(
            "tests/contract/test_removal.py::test_the_last_status_of_another_task_with_that_id_removes_nothing[moto]",
        ),
        why="another task with the same id is removed before it has reported its end",
    ),
    Mutant(
        name="a-short-error-keeps-its-group",
        file="layers/core/roundsman/model/failure.py",
        old="message=normalised(_without(task_id, whole.message))",
        new="message=whole.message",
        tests=(
            "tests/unit/engine/test_record_limits.py::test_a_short_error_is_of_the_same_failure_group_as_the_whole_one",
            "tests/unit/model/test_failure.py::test_a_short_message_is_kept_as_it_is_and_a_longer_one_without_what_differs",
        ),
        why="one cause has two failure groups and two alerts",
    ),
    Mutant(
        name="rearm-condition",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='f"{TASK_IS_AS_SEEN} AND {STILL_IN_THAT_LANE}"',
        new='f"Version >= :seen AND CreatedAt = :created AND {STILL_IN_THAT_LANE}"',
        tests=(
            "tests/contract/test_task_store.py::test_rearming_after_a_newer_decision_leaves_its_earlier_deadline[moto]",
        ),
        why="a re-arm overwrites an earlier deadline",
    ),
    Mutant(
        name="clear-owed-condition",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old=('            f"{TASK_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",\n            {**values'),
        new=(
            '            f"Version >= :seen AND CreatedAt = :created AND {SOMETHING_IS_OWED}",\n'
            "            {**values"
        ),
        tests=(
            "tests/contract/test_task_store.py::test_clearing_changes_nothing_about_a_newer_decision[moto]",
        ),
        why="what a newer decision owes is forgotten",
    ),
    Mutant(
        name="retention-zero-save",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old=(
            '                        Key={"TaskId": text(task.task_id)},\n'
            "                        ConditionExpression=TASK_IS_AS_SEEN,"
        ),
        new=(
            '                        Key={"TaskId": text(task.task_id)},\n'
            "                        "
            'ConditionExpression="Version >= :seen AND CreatedAt = :created",'
        ),
        tests=(
            "tests/contract/test_removal.py::test_a_removal_on_an_older_version_removes_nothing[moto]",
        ),
        why="a record is removed under a newer decision",
    ),
    Mutant(
        name="retention-zero-clear",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='"ConditionExpression": f"{TASK_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",',
        new=(
            '"ConditionExpression": '
            'f"Version >= :seen AND CreatedAt = :created AND {SOMETHING_IS_OWED}",'
        ),
        tests=(
            "tests/contract/test_removal.py::test_the_last_status_of_an_older_version_removes_nothing_that_was_decided_since[moto]",
        ),
        why="the same, as its last status is sent",
    ),
    Mutant(
        name="an-order-expires-while-it-exists",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='ORDER_EXISTS = "attribute_exists(OrderID)"',
        new='ORDER_EXISTS = "attribute_not_exists(OrderIDs)"',
        tests=(
            "tests/contract/test_order_retention.py::test_a_task_without_an_order_row_ends_all_the_same[moto]",
        ),
        why="an order row is made up, without an order",
    ),
    Mutant(
        name="an-order-of-a-task-that-is-begun-again-stays",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='"UpdateExpression": "REMOVE ExpiresAt",\n            "ConditionExpression": ORDER',
        new='"UpdateExpression": "REMOVE Expires",\n            "ConditionExpression": ORDER',
        tests=(
            "tests/contract/test_order_retention.py::test_a_task_that_is_begun_again_has_its_order_for_as_long_as_it_takes[moto]",
        ),
        why="an open task loses its order",
    ),
    Mutant(
        name="a-removed-row-is-deleted",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old="            for row in removed\n",
        new="            for row in removed[:0]\n",
        tests=(
            "tests/contract/test_settled_rows.py::test_a_step_that_goes_on_is_removed_from_its_row[moto]",
        ),
        why="contents that were erased stay in a row that no record lists",
    ),
    Mutant(
        name="rows-go-with-a-task-that-is-not-retained",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old="kept, removed, added = (), task.settled, None",
        new="kept, removed, added = (), (), None",
        tests=(
            "tests/contract/test_settled_rows.py::test_rows_are_removed_with_a_task_that_is_not_retained[moto]",
        ),
        why="rows without a task stay for ever",
    ),
    Mutant(
        name="a-row-expires-when-its-task-does",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old="if _seconds(row.expires_at) == _seconds(task.expires_at):",
        new="if task.settled:",
        tests=(
            "tests/contract/test_settled_rows.py::test_rows_expire_with_the_task_and_stay_while_it_goes_on[moto]",
        ),
        why="rows stay for ever, or expire while their task goes on",
    ),
    Mutant(
        name="the-expiry-of-a-row-that-is-gone-is-not-stored",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='"ConditionExpression": TASK_EXISTS,\n            }\n            if',
        new='"ConditionExpression": "attribute_not_exists(No)",\n            }\n            if',
        tests=(
            "tests/contract/test_settled_rows.py::test_clearing_by_a_task_of_before_the_rows_moved_is_made_again[moto]",
        ),
        why="an empty row is made that no record lists",
    ),
    Mutant(
        name="a-row-that-another-decision-removed-is-no-fault",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old="        while item and lacks_rows(item, rows):",
        new="        while not item and lacks_rows(item, rows):",
        tests=(
            "tests/contract/test_settled_rows.py::test_a_row_that_a_decision_removes_in_between_is_no_fault[moto-True]",
        ),
        why="a healthy task is reported as unreadable",
    ),
    Mutant(
        name="rows-and-history-fit-into-one-transaction",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old="ROWS_A_DECISION - len(of_rows)",
        new="ROWS_A_DECISION",
        tests=(
            "tests/contract/test_settled_rows.py::test_rows_and_history_share_a_transaction[dynamodb_local]",
        ),
        why="DynamoDB refuses the write for ever",
    ),
    Mutant(
        name="a-row-of-a-former-task-does-not-count",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old='row.get("CreatedAt") == item.get("CreatedAt")',
        new='row.get("CreatedAt") != ""',
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_a_missing_row_makes_the_task_unreadable",
        ),
        why="a task takes the steps of a former one with its id",
    ),
    Mutant(
        name="a-step-that-was-removed-does-not-come-back",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="if row.steps.keys() <= task.steps.keys() and",
        new="if",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_a_step_that_the_task_has_lost_does_not_come_back",
        ),
        why="a step of a former plan is performed",
    ),
    Mutant(
        name="only-the-smallest-rows-become-one",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="smallest[: max(2, fitting)]",
        new="smallest",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_only_the_smallest_rows_become_one_and_at_least_two",
        ),
        why="a row has more bytes than DynamoDB stores",
    ),
    Mutant(
        name="two-rows-become-one-however-large-they-are",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="smallest[: max(2, fitting)]",
        new="smallest[:fitting]",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_only_the_smallest_rows_become_one_and_at_least_two",
        ),
        why="a task has so many rows that its end does not fit in one transaction",
    ),
    Mutant(
        name="many-rows-become-one",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="if len(rows) <= MOST_ROWS:",
        new="if rows:",
        tests=("tests/unit/aws/dynamodb/test_settled.py::test_so_many_rows_become_one",),
        why="a long task can never end: its rows do not fit in one transaction",
    ),
    Mutant(
        name="a-merged-row-has-only-the-steps-that-count",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old=(
            "            for name, row in _youngest(rows).items()\n"
            "            if row.version in again and (name in elsewhere or name in row.added)\n"
        ),
        new=(
            "            for row in rows\n"
            "            for name in row.steps\n"
            "            if row.version in again\n"
        ),
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_a_merged_row_has_only_the_steps_that_count",
        ),
        why="a former record of a step takes the place of the present one",
    ),
    Mutant(
        name="a-merged-row-keeps-the-names-of-steps-that-are-undone",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="(name in elsewhere or name in row.added)",
        new="name in elsewhere",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_the_names_of_steps_that_are_being_undone_stay_in_a_row_that_is_written_again[merged]",
        ),
        why="the names of steps that are undone make the record too large",
    ),
    Mutant(
        name="a-row-with-names-stays",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old=("\n        or any(youngest[name] is row for name in row.added)"),
        new="",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_the_names_of_undone_steps_stay_in_their_row_until_a_younger_one_has_them",
        ),
        why="the names of steps that are undone make the record too large",
    ),
    Mutant(
        name="a-large-erased-task-gets-a-row",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="LARGE_RECORD if task.ended else",
        new="10**9 if task.ended else",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_all_steps_of_an_erased_task_are_in_one_row",
        ),
        why="an erased task with a thousand steps is larger than what DynamoDB stores",
    ),
    Mutant(
        name="an-end-that-owes-something-writes-no-row",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="if not (task.ended and task.owed):",
        new="if True:",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_no_row_is_written_with_an_end_that_leaves_something_owed",
        ),
        why="a row with results stays for ever, although its task was removed",
    ),
    Mutant(
        name="an-order-is-created-once",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='NO_SUCH_ORDER = "attribute_not_exists(OrderID)"',
        new='NO_SUCH_ORDER = "attribute_not_exists(NeverThere)"',
        tests=(
            "tests/contract/test_task_store.py::test_an_order_outlives_its_task_and_never_makes_it_anew[moto]",
        ),
        why="a repeated order makes a second task",
    ),
    Mutant(
        name="a-task-is-created-once",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='NO_SUCH_TASK = "attribute_not_exists(TaskId)"',
        new='NO_SUCH_TASK = "attribute_not_exists(NeverThere)"',
        tests=(
            "tests/contract/test_task_store.py::test_a_task_without_its_order_row_is_nobodys_duplicate[moto]",
        ),
        why="a task under way begins again",
    ),
    Mutant(
        name="a-conflict-is-not-exists",
        file="layers/core/roundsman/aws/errors.py",
        old="if any(code.startswith(CONDITION_FAILED) for code in codes):",
        new=(
            'if any(code.startswith((CONDITION_FAILED, "TransactionConflict")) for code in codes):'
        ),
        tests=(
            "tests/unit/aws/test_errors.py::test_a_cancelled_transaction_means_what_cancelled_it",
        ),
        why="an order is taken for a duplicate of itself and lost",
    ),
    Mutant(
        name="lease-condition-dynamodb",
        file="layers/core/roundsman/aws/dynamodb/control.py",
        old=(
            "                        Item=item,\n"
            "                        ConditionExpression=VERSION_IS_AS_SEEN,"
        ),
        new=(
            "                        Item=item,\n"
            '                        ConditionExpression="Version >= :seen",'
        ),
        tests=(
            "tests/contract/test_leases.py::test_leases_are_not_written_on_a_version_that_is_over[moto]",
        ),
        why="two supervisors do each pass twice",
    ),
    Mutant(
        name="tables-in-memory-mind-conditions",
        file="testing/roundsman_testing/dynamodb/tables.py",
        old="if condition is not None and not condition.holds(old or {}, given):",
        new="if condition is not None and not old and not condition.holds({}, given):",
        tests=(
            "tests/contract/test_task_store.py::test_a_decision_on_another_version_changes_nothing[memory-0]",
            "tests/contract/test_leases.py::test_leases_are_not_written_on_a_version_that_is_over[memory]",
        ),
        why="tests on tables in memory prove nothing",
    ),
    Mutant(
        name="tables-in-memory-leave-out-no-parameter",
        file="testing/roundsman_testing/dynamodb/tables.py",
        old="if strange := sorted(request.keys() - KNOWN):",
        new="if strange := list[str]():",
        tests=(
            "tests/unit/testing/test_tables_in_memory.py::test_a_parameter_that_they_do_not_know_is_refused_and_not_left_out",
        ),
        why="a read that filters is tested as one that finds everything",
    ),
    Mutant(
        name="a-restored-index-has-no-lag",
        file="testing/roundsman_testing/dynamodb/tables.py",
        old="for index in (restored.primary, *restored.indexes.values()):",
        new="for index in (restored.primary,):",
        tests=(
            "tests/unit/testing/test_tables_in_memory.py::test_a_restore_brings_back_items_and_indexes_and_forgets_stale_images",
        ),
        why="a restore in a test loses the due entries of all orders",
    ),
    Mutant(
        name="a-lease-is-anothers",
        file="layers/core/roundsman/supervisor/shard_leases.py",
        old=("        if lease.held_by_another(self._owner, now):\n            return False\n"),
        new="",
        tests=(
            "tests/unit/supervisor/test_shard_leases.py::test_what_another_is_in_is_left_to_it",
        ),
        why="supervisors ignore each other",
    ),
    Mutant(
        name="that-there-is-no-plan-is-read-twice",
        file="layers/core/roundsman/aws/dynamodb/control.py",
        old=" or self._read(plan_hash, consistent=True)",
        new="",
        tests=(
            "tests/contract/test_plans.py::test_that_there_is_no_plan_is_only_believed_of_a_consistent_read",
        ),
        why="an order whose plan was just stored is archived",
    ),
    Mutant(
        name="an-older-closing-closes-no-later-claim",
        file="layers/core/roundsman/aws/dynamodb/call_notes.py",
        old='row.number("ClosedUpTo", 0) >= claim',
        new='row.number("ClosedUpTo", 0) > 0',
        tests=(
            "tests/contract/test_call_notes.py::test_that_a_key_was_closed_for_an_older_claim_proves_nothing_of_a_later_one[memory]",
        ),
        why="a copy of the request calls the service after its attempt was given back",
    ),
    Mutant(
        name="a-broken-record-stays-where-it-first-failed",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old="FailedAt = if_not_exists(FailedAt, :now)",
        new="FailedAt = :now",
        tests=(
            "tests/contract/test_failure_groups.py::test_a_record_that_fails_again_and_again_stays_where_it_first_failed[memory]",
        ),
        why="a group that shows the newest failures shows one old record at each visit",
    ),
    Mutant(
        name="what-is-owed-and-cannot-be-sent-is-put-off",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="        if delivered.still_owed:\n            report.put_off.add(entry)\n",
        new="        if delivered.still_owed:\n            pass\n",
        tests=(
            "tests/unit/supervisor/test_supervisor_passes.py::test_what_is_owed_and_cannot_be_sent_keeps_nothing_waiting_either",
        ),
        why="orders behind those whose reply queue fails are never visited",
    ),
    Mutant(
        name="newer-records-are-left",
        file="layers/core/roundsman/aws/dynamodb/codec.py",
        old="if schema is not None and schema > SCHEMA:",
        new="if schema is not None and schema < 0:",
        tests=(
            "tests/unit/aws/dynamodb/test_codec.py::test_a_newer_format_is_not_read_whatever_else_is_in_it",
        ),
        why="old code misreads what new code wrote",
    ),
    Mutant(
        name="a-record-with-a-new-field-is-left-by-older-code",
        file="layers/core/roundsman/aws/dynamodb/codec.py",
        old="        TASK.since(task),\n",
        new="        1,\n",
        tests=(
            "tests/unit/aws/dynamodb/test_codec.py::test_a_task_with_a_deadline_has_its_format_whatever_else_is_in_it",
        ),
        why="older code drops the deadline and performs steps after it",
    ),
    Mutant(
        name="a-record-with-a-new-field-of-a-step-is-left-by-older-code",
        file="layers/core/roundsman/aws/dynamodb/codec.py",
        old="        *(STEP.since(stored_step(one)) for one in steps),\n",
        new="        1,\n",
        tests=(
            "tests/unit/aws/dynamodb/test_codec.py::test_the_format_of_a_record_is_the_highest_of_its_fields",
        ),
        why="older code drops when the next reminder is due, and it never comes",
    ),
    Mutant(
        name="an-ended-task-with-an-order-that-expires-is-left-by-older-code",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='            changes["#Schema"] = number(schema_of(task))\n',
        new='            changes["#Schema"] = number(4)\n',
        tests=(
            "tests/contract/test_order_retention.py::test_older_code_does_not_begin_a_task_again_whose_order_expires[owed-short]",
        ),
        why="older code begins the task again, and its order expires under it",
    ),
    Mutant(
        name="a-divided-record-with-a-deadline-is-left-by-older-code",
        file="layers/core/roundsman/aws/dynamodb/settled.py",
        old="number(schema_of(task, DIVIDED_SCHEMA))",
        new="number(DIVIDED_SCHEMA)",
        tests=(
            "tests/unit/aws/dynamodb/test_settled.py::test_a_divided_record_with_a_deadline_has_the_format_of_the_deadline",
        ),
        why="older code drops the deadline of a long task",
    ),
    Mutant(
        name="a-plan-with-a-deadline-is-left-by-older-code",
        file="layers/core/roundsman/definition/plan.py",
        old="    if workflow.deadline is not None:\n        return DEADLINE_PLAN_VERSION\n",
        new="",
        tests=(
            "tests/unit/definition/test_plan.py::test_only_a_plan_with_a_deadline_has_the_version_that_older_code_does_not_read",
        ),
        why="older code performs steps after the deadline",
    ),
    Mutant(
        name="ttl-in-seconds",
        file="layers/core/roundsman/aws/dynamodb/codec.py",
        old="return number(epoch_seconds(instant))",
        new="return number(instant)",
        tests=(
            "tests/unit/aws/dynamodb/test_codec.py::test_a_record_expires_at_a_full_second_and_never_early",
        ),
        why="no record ever expires",
    ),
    Mutant(
        name="a-broken-record-stops-nobody",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old=(
            "except Exception as problem:  # noqa: BLE001 - a record may break the "
            "machine in any way"
        ),
        new="except ZeroDivisionError as problem:",
        tests=(
            "tests/unit/supervisor/test_supervisor.py::test_a_broken_record_at_the_head_of_its_shard_does_not_stop_the_rest",
        ),
        why="one bad record stops its shard",
    ),
    Mutant(
        name="a-broken-record-is-put-off",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old=(
            "            self._on_trouble(entry.task_id, problem)\n"
            "            self._postpone(entry.task_id, shard, problem, report)\n"
        ),
        new="            self._on_trouble(entry.task_id, problem)\n",
        tests=(
            "tests/unit/supervisor/test_supervisor.py::test_a_broken_record_is_looked_at_less_and_less_often_and_alerts_once",
        ),
        why="each pass begins at the same bad record",
    ),
    Mutant(
        name="a-broken-record-is-reported",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="reported = self._reporter.unreadable(task_id, problem)\n",
        new="reported = Reported(type(problem).__name__)\n",
        also=(
            (
                "from roundsman.alerts.reporter import Reporter\n",
                "from roundsman.alerts.reporter import Reported, Reporter\n",
            ),
        ),
        tests=(
            "tests/unit/supervisor/test_supervisor.py::test_a_broken_record_is_looked_at_less_and_less_often_and_alerts_once",
        ),
        why="a record that cannot be handled is nobody's",
    ),
    Mutant(
        name="the-supervisor-raises-due-at",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="            moved_on = replace(moved_on, due_at=due(moved_on, now))\n",
        new="            pass\n",
        tests=(
            "tests/unit/supervisor/test_supervisor.py::test_what_was_just_moved_on_is_not_looked_at_again_before_its_time",
        ),
        why="a task that was looked at is due again at once, for ever",
    ),
)
