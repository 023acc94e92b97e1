"""The guards of steps that are added at run time, outside of the engine's checked modules."""

from tools.mutants.mutant import Mutant

TASKS = "layers/core/roundsman/aws/dynamodb/tasks.py"
ROWS = "layers/core/roundsman/aws/dynamodb/input_rows.py"
BESIDE = "layers/core/roundsman/aws/dynamodb/rows_beside.py"
PLACES = "layers/core/roundsman/definition/added_steps.py"

ENGINE_TESTS = "tests/unit/engine/test_added_steps.py"
ROW_TESTS = "tests/contract/test_input_rows.py"

ADDED = (
    Mutant(
        name="a-reply-adds-all-its-steps",
        file="layers/core/roundsman/engine/steps.py",
        old="\n    add_steps(context, step.name, then)\n",
        new="\n    add_steps(context, step.name, then[:1])\n",
        tests=(
            f"{ENGINE_TESTS}::test_added_steps_begin_at_once_and_what_comes_after_their_adder_waits_for_them",
        ),
        why="a trip has the first of two legs",
    ),
    Mutant(
        name="a-late-success-adds-no-wrong-steps",
        file="layers/core/roundsman/engine/steps.py",
        old="    fits = why_not_added(context, step.name, reply.then) is None\n",
        new="    fits = True\n",
        tests=(f"{ENGINE_TESTS}::test_a_late_answer_that_adds_what_it_may_not_completes_nothing",),
        why="a step of no kind is in the record, and no plan has it",
    ),
    Mutant(
        name="input-rows-are-written-with-their-record",
        file=TASKS,
        old="        of_rows += self._input_writes(task, inputs)\n        of_rows",
        new=(
            "        for one in self._input_writes(task, inputs):\n"
            "            self._client.transact_write_items(TransactItems=[one])\n"
            "        of_rows"
        ),
        tests=(f"{ROW_TESTS}::test_a_write_that_comes_too_late_adds_nothing",),
        why="a decision that lost a race leaves the inputs of its steps in place of the right ones",
    ),
    Mutant(
        name="input-rows-are-written",
        file=TASKS,
        old="        of_rows += self._input_writes(task, inputs)\n        of_rows",
        new="        of_rows",
        tests=(
            f"{ROW_TESTS}::test_inputs_are_read_back_as_they_were_added_from_as_few_rows_as_they_are_in",
        ),
        why="an added step has no input, and its order stands still",
    ),
    Mutant(
        name="input-rows-expire-with-their-record",
        file=BESIDE,
        old="            elif before.expires_at != task.expires_at:\n",
        new="            elif False:\n",
        tests=(f"{ROW_TESTS}::test_rows_expire_with_their_record",),
        why="inputs of orders are kept for ever",
    ),
    Mutant(
        name="input-rows-are-removed-with-their-record",
        file=BESIDE,
        old="            for row in range(count, before.count)\n",
        new="            for row in ()\n",
        tests=(
            f"{ROW_TESTS}::test_rows_are_removed_with_a_record_that_is_not_retained",
            f"{ROW_TESTS}::test_the_rows_of_an_erased_task_and_of_one_that_begins_again_are_removed",
        ),
        why="what a person asked to erase is still there",
    ),
    Mutant(
        name="inputs-of-a-former-task-are-not-taken",
        file=ROWS,
        old='        if row.get("CreatedAt") != number(task.created_at):\n            continue\n',
        new="",
        tests=(f"{ROW_TESTS}::test_the_row_of_a_former_task_of_that_id_is_not_taken",),
        why="a leg is booked to where another order went",
    ),
    Mutant(
        name="an-added-step-is-undone-before-its-adder",
        file=PLACES,
        old="dict.fromkeys(self._instances(self._added[name].adder))",
        new="dict[str, None]()",
        tests=(
            f"{ENGINE_TESTS}::test_what_was_added_is_undone_before_its_adder_and_the_last_one_first",
        ),
        why="the route is given back while its legs are still booked",
    ),
    Mutant(
        name="what-comes-after-an-adder-waits-for-its-parts",
        file=PLACES,
        old="(part for name in step.after for part in parts.of(name))",
        new="step.after",
        tests=(
            f"{ENGINE_TESTS}::test_added_steps_begin_at_once_and_what_comes_after_their_adder_waits_for_them",
        ),
        why="a trip is charged before its legs are booked",
    ),
    Mutant(
        name="an-item-does-not-wait-for-what-its-siblings-add",
        file=PLACES,
        old="if instance in self._added else self._plan.instances(step_of(instance))",
        new="",
        tests=(
            f"{ENGINE_TESTS}::test_what_an_item_adds_after_its_own_fan_out_waits_for_the_items_alone",
        ),
        why="of two items only the first may add a step after all of them",
    ),
)
