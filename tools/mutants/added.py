"""The guards of steps that are added at run time, outside of the engine's checked modules."""

from tools.mutants.mutant import Mutant

TASKS = "layers/core/roundsman/aws/dynamodb/tasks.py"
ROWS = "layers/core/roundsman/aws/dynamodb/input_rows.py"
PLACES = "layers/core/roundsman/definition/added_steps.py"
ADDING = "layers/core/roundsman/engine/added_steps.py"
UNDOS = "layers/core/roundsman/engine/compensation.py"
DECISION = "layers/core/roundsman/engine/decision.py"

ENGINE_TESTS = "tests/unit/engine/test_added_steps.py"
MANY_TESTS = "tests/unit/engine/test_many_added_steps.py"
ROW_TESTS = "tests/contract/test_input_rows.py"
STORY_TESTS = "tests/world/test_few_undos.py"

ADDED = (
    Mutant(
        name="a-reply-adds-all-its-steps",
        file="layers/core/roundsman/engine/steps.py",
        old="    add_steps(context, step.name, then)\n",
        new="    add_steps(context, step.name, then[:1])\n",
        tests=(
            f"{ENGINE_TESTS}::test_added_steps_begin_at_once_and_what_comes_after_their_adder_waits_for_them",
        ),
        why="a trip has the first of two legs",
    ),
    Mutant(
        name="a-late-success-adds-no-wrong-steps",
        file="layers/core/roundsman/engine/steps.py",
        old="    fits = fits and why_not_added(context, step.name, reply.then) is None\n",
        new="",
        tests=(f"{ENGINE_TESTS}::test_a_late_answer_that_adds_what_it_may_not_completes_nothing",),
        why="a step of no kind is in the record, and no plan has it",
    ),
    Mutant(
        name="input-rows-are-written-with-their-record",
        file=TASKS,
        old="        of_rows += self._input_writes(task, inputs)\n        beside",
        new=(
            "        for one in self._input_writes(task, inputs):\n"
            "            self._client.transact_write_items(TransactItems=[one])\n"
            "        beside"
        ),
        tests=(f"{ROW_TESTS}::test_a_write_that_comes_too_late_adds_nothing",),
        why="a decision that lost a race leaves the inputs of its steps in place of the right ones",
    ),
    Mutant(
        name="input-rows-are-written",
        file=TASKS,
        old="        of_rows += self._input_writes(task, inputs)\n        beside",
        new="        beside",
        tests=(
            f"{ROW_TESTS}::test_inputs_are_read_back_as_they_were_added_from_as_few_rows_as_they_are_in",
        ),
        why="an added step has no input, and its order stands still",
    ),
    Mutant(
        name="input-rows-expire-with-their-record",
        file=ROWS,
        old="        elif before.expires_at != task.expires_at:\n",
        new="        elif False:\n",
        tests=(f"{ROW_TESTS}::test_rows_expire_with_their_record",),
        why="inputs of orders are kept for ever",
    ),
    Mutant(
        name="input-rows-are-removed-with-their-record",
        file=ROWS,
        old="        for row in range(count, before.count)\n",
        new="        for row in ()\n",
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
    Mutant(
        name="undos-of-added-steps-wait-for-room",
        file=UNDOS,
        old="            if room <= 0:\n",
        new="            if False:\n",
        tests=(
            f"{MANY_TESTS}::test_so_many_undos_of_settled_added_steps_begin_and_then_one_for_each_that_is_made",
        ),
        why="a thousand steps move back to the record, which is too large then",
    ),
    Mutant(
        name="undos-of-steps-that-were-not-settled-need-no-room",
        file=UNDOS,
        old="step.name in added and record.process_state in SETTLED",
        new="step.name in added",
        tests=(
            f"{MANY_TESTS}::test_undos_of_added_steps_that_were_not_settled_begin_without_regard_to_the_room",
        ),
        why="a step that is in the record anyway waits for no reason",
    ),
    Mutant(
        name="a-task-ends-when-so-many-undos-have-failed-that-no-other-begins",
        file=DECISION,
        old=(
            "        if self.room_for_undos() <= 0 and not self._undoing():\n"
            "            return False  # so many undos have failed that no other one begins\n"
        ),
        new="",
        tests=(
            f"{MANY_TESTS}::test_undos_that_have_failed_take_room_and_the_task_ends_when_none_is_left",
            f"{STORY_TESTS}::test_each_order_ends_as_it_must_though_undos_wait_for_room[44]",
        ),
        why="the task is being undone for ever, and nobody is told",
    ),
    Mutant(
        name="a-task-does-not-end-while-an-undo-is-in-progress",
        file=DECISION,
        old="if self.room_for_undos() <= 0 and not self._undoing():",
        new="if self.room_for_undos() <= 0:",
        tests=(
            f"{MANY_TESTS}::test_the_task_does_not_end_while_the_undos_that_fill_the_room_wait_for_their_agent",
        ),
        why="a task is archived while the undos that fill the room wait for a hold to end",
    ),
    Mutant(
        name="failed-undos-take-room",
        file=DECISION,
        old="NOT_UNDONE = frozenset({ProcessState.UNDOING, ProcessState.UNDO_ERROR})",
        new="NOT_UNDONE = frozenset({ProcessState.UNDOING})",
        tests=(
            f"{MANY_TESTS}::test_undos_that_have_failed_take_room_and_the_task_ends_when_none_is_left",
        ),
        why="a thousand failed undos with their errors are in the record, which is too large then",
    ),
    Mutant(
        name="open-added-steps-are-limited",
        file=ADDING,
        old="    if still_open > MOST_OPEN_ADDED:\n",
        new="    if False:\n",
        tests=(f"{MANY_TESTS}::test_added_steps_that_are_settled_do_not_count_as_open",),
        why="a record has a thousand steps that are not done, and is too large",
    ),
    Mutant(
        name="an-adder-does-not-count-as-open",
        file=ADDING,
        old="        if name != adder and not _is_settled(decision, name)\n",
        new="        if not _is_settled(decision, name)\n",
        tests=(
            f"{MANY_TESTS}::test_an_adder_is_done_with_its_reply_so_each_open_step_may_add_the_next_one",
        ),
        why="of a hundred loops beside one another none may go on",
    ),
    Mutant(
        name="names-of-all-added-steps-are-limited",
        file=ADDING,
        old="((unsettled, ADDED_LIMIT), (added, ALL_ADDED_LIMIT))",
        new="((unsettled, ADDED_LIMIT),)",
        tests=(f"{MANY_TESTS}::test_the_names_of_all_added_steps_are_limited",),
        why="the rows beside a record grow without a limit",
    ),
    Mutant(
        name="rounds-of-all-steps-of-a-kind-are-remembered",
        file=ADDING,
        old="        decision.remove(name, remember_as=step_of(name))\n",
        new="        decision.remove(name)\n",
        tests=(
            f"{MANY_TESTS}::test_no_key_of_an_added_step_is_used_in_two_runs_whatever_they_add",
            f"{MANY_TESTS}::test_a_task_of_any_number_of_added_steps_begins_again",
        ),
        why="a task with a thousand added steps keeps the rounds of them all",
    ),
)
