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
        name="version-condition-memory",
        file="layers/core/roundsman/testing/memory.py",
        old="return stored is not None and stored.version == version",
        new="return stored is not None",
        tests=(
            "tests/contract/test_task_store.py::test_a_decision_on_another_version_changes_nothing[memory-0]",
        ),
        why="tests on the memory store prove nothing",
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
        name="same-task-condition-memory",
        file="layers/core/roundsman/testing/memory.py",
        old="if stored is not None and stored.created_at != task.created_at:",
        new="if stored is None:",
        tests=(
            "tests/contract/test_task_store.py::test_a_decision_on_another_task_with_that_id_changes_nothing[memory]",
            "tests/unit/scheduler/test_task_cache.py::test_a_kept_task_is_never_stored_over_another_one_that_has_taken_its_id",
        ),
        why="tests on the memory store prove nothing",
    ),
    Mutant(
        name="kept-tasks-owe-nothing",
        file="layers/core/roundsman/scheduler/task_cache.py",
        old="task.ended or task.owed or task.order_expires",
        new="task.ended or task.order_expires",
        tests=(
            "tests/unit/scheduler/test_task_cache.py::test_a_task_that_owes_a_status_is_not_kept",
        ),
        why="a status that was sent is owed again",
    ),
    Mutant(
        name="kept-tasks-are-for-their-own-claim",
        file="layers/core/roundsman/scheduler/task_cache.py",
        old="record.under_way and record.locked_by == event.lock",
        new="record.under_way",
        tests=(
            "tests/unit/scheduler/test_task_cache.py::test_a_reply_to_another_claim_finds_nothing",
        ),
        why="each reply that another instance's claim is for costs a refused write",
    ),
    Mutant(
        name="rearm-condition",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old='f"{VERSION_IS_AS_SEEN} AND {STILL_IN_THAT_LANE}"',
        new='f"Version >= :seen AND {STILL_IN_THAT_LANE}"',
        tests=(
            "tests/contract/test_task_store.py::test_rearming_after_a_newer_decision_leaves_its_earlier_deadline[moto]",
        ),
        why="a re-arm overwrites an earlier deadline",
    ),
    Mutant(
        name="clear-owed-condition",
        file="layers/core/roundsman/aws/dynamodb/tasks.py",
        old=('            f"{VERSION_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",\n            {**values'),
        new=('            f"Version >= :seen AND {SOMETHING_IS_OWED}",\n            {**values'),
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
        old='"ConditionExpression": f"{VERSION_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",',
        new='"ConditionExpression": f"Version >= :seen AND {SOMETHING_IS_OWED}",',
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
        old='"UpdateExpression": "REMOVE ExpiresAt",',
        new='"UpdateExpression": "REMOVE Expires",',
        tests=(
            "tests/contract/test_order_retention.py::test_a_task_that_is_begun_again_has_its_order_for_as_long_as_it_takes[moto]",
        ),
        why="an open task loses its order",
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
        name="lease-condition-memory",
        file="layers/core/roundsman/testing/memory.py",
        old=("            if self._leases.version != seen:\n                return False\n"),
        new="",
        tests=(
            "tests/contract/test_leases.py::test_leases_are_not_written_on_a_version_that_is_over[memory]",
        ),
        why="tests on the memory leases prove nothing",
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
        name="a-broken-record-is-told-of",
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
