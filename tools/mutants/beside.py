"""The guards of the rows beside the record of a task: results left out, and inputs of steps."""

from tools.mutants.mutant import Mutant

ROWS = "layers/core/roundsman/aws/dynamodb/rows_beside.py"

TESTS = "tests/contract/test_input_rows.py"
RESULT_TESTS = "tests/contract/test_result_rows.py"

BESIDE = (
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
        tests=(f"{RESULT_TESTS}::test_a_row_that_is_begun_has_nothing_of_a_former_task",),
        why="a task has results of a former one with its id, of which a row was left",
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
