"""The guards of the rows beside the record of a task: results left out, and inputs of steps."""

from tools.mutants.mutant import Mutant

ROWS = "layers/core/roundsman/aws/dynamodb/rows_beside.py"
RESULTS = "layers/core/roundsman/aws/dynamodb/result_rows.py"

TESTS = "tests/contract/test_input_rows.py"
RESULT_TESTS = "tests/contract/test_result_rows.py"

BESIDE = (
    Mutant(
        name="rows-that-are-too-many-are-removed",
        file=ROWS,
        old="            for row in range(count, before.count)\n",
        new="            for row in range(before.count, before.count)\n",
        tests=(
            f"{TESTS}::test_rows_are_removed_with_a_record_that_is_not_retained",
            f"{TESTS}::test_the_rows_of_an_erased_task_and_of_one_that_begins_again_are_removed",
        ),
        why="what was erased stays in a row for ever",
    ),
    Mutant(
        name="rows-expire-with-their-record",
        file=ROWS,
        old="            elif before.expires_at != task.expires_at:\n",
        new="            elif False:\n",
        tests=(f"{TESTS}::test_rows_expire_with_their_record",),
        why="a row stays for ever after its record has expired",
    ),
    Mutant(
        name="a-row-that-is-written-expires-with-its-record",
        file=ROWS,
        old='            of_row["ExpiresAt"] = expiry(task.expires_at)\n',
        new="            pass\n",
        tests=(f"{TESTS}::test_rows_expire_with_their_record",),
        why="a row that is written with the end of its task stays for ever",
    ),
    Mutant(
        name="a-row-that-is-kept-has-its-former-steps",
        file=ROWS,
        old="        if anew:\n",
        new="        if True:\n",
        tests=(f"{TESTS}::test_steps_that_are_added_later_join_the_row_of_those_before",),
        why="a step that is added later takes away the inputs of those before",
    ),
    Mutant(
        name="a-row-that-is-begun-has-nothing-of-a-former-task",
        file=ROWS,
        old="        if anew:\n",
        new="        if False:\n",
        tests=(f"{TESTS}::test_a_task_that_begins_again_begins_with_new_rows",),
        why="a task that begins again has inputs of its former life",
    ),
    Mutant(
        name="a-task-that-goes-on-has-rows-that-stay",
        file=ROWS,
        old='                "UpdateExpression": "REMOVE ExpiresAt",\n',
        new='                "UpdateExpression": "REMOVE NeverThere",\n',
        tests=(f"{TESTS}::test_rows_expire_with_their_record",),
        why="the inputs of an order that goes on are removed while it runs",
    ),
)
