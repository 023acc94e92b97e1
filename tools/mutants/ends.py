"""The guards of how a task ends: what it fails of, what is undone, and when it may leave."""

from tools.mutants.mutant import Mutant

ENDS = (
    Mutant(
        name="ending-claims-nothing",
        file="layers/core/roundsman/engine/steps.py",
        old=("    if context.decision.ending:\n        return []\n"),
        new="",
        also=(
            (
                "if context.decision.ending or not _condition_holds(context, step):",
                "if not _condition_holds(context, step):",
            ),
        ),
        tests=(
            "tests/unit/engine/test_on_failure.py::test_the_step_under_way_may_still_succeed_but_nothing_follows_it",
        ),
        why="a failed task goes on doing what must be undone",
    ),
    Mutant(
        name="ending-retries-nothing",
        file="layers/core/roundsman/engine/attempts.py",
        old=("    if operation == PERFORM and context.decision.ending:\n        return True\n"),
        new="",
        tests=(
            "tests/unit/engine/test_on_failure.py::test_the_step_under_way_is_not_retried_when_it_fails",
        ),
        why="a task that has failed never ends",
    ),
    Mutant(
        name="ending-requeues-nothing",
        file="layers/core/roundsman/engine/attempts.py",
        old="if not (context.decision.ending and operation == PERFORM):  # else",
        new="if operation:  # else",
        tests=(
            "tests/unit/engine/test_operator.py::test_more_time_for_a_step_of_an_ending_task_is_not_another_attempt",
        ),
        why="a request that nobody reads keeps a failed task open",
    ),
    Mutant(
        name="first-ending-holds",
        file="layers/core/roundsman/engine/decision.py",
        old=(
            "        if self.ending is not None:\n"
            "            return False\n"
            "        self.ending = ending"
        ),
        new="        self.ending = ending",
        tests=("tests/unit/engine/test_on_failure.py::test_the_first_failure_holds",),
        why="a second failure turns an archived task to undo",
    ),
    Mutant(
        name="point-of-no-return",
        file="layers/core/roundsman/engine/on_failure.py",
        old="if isinstance(final, UndoPlan) and not _past_no_return(context):",
        new="if isinstance(final, UndoPlan):",
        tests=(
            "tests/unit/engine/test_attempts_failures.py::test_after_the_point_of_no_return_nothing_is_undone",
        ),
        why="what has shipped is refunded",
    ),
    Mutant(
        name="undo-of-what-was-ever-claimed",
        file="layers/core/roundsman/engine/compensation.py",
        old=(
            "TO_UNDO = frozenset({ProcessState.PENDING, ProcessState.PROCESSED, "
            "ProcessState.ERROR})"
        ),
        new="TO_UNDO = frozenset({ProcessState.PROCESSED})",
        tests=(
            "tests/unit/engine/test_compensation.py::test_a_step_that_was_ever_claimed_is_compensated_whatever_came_of_it",
        ),
        why="a charge whose reply was lost is not refunded",
    ),
    Mutant(
        name="undone-means-nothing-stands",
        file="layers/core/roundsman/engine/effects.py",
        old=(
            "return may_have_taken_effect(record) and record.process_state is not "
            "ProcessState.UNDO_ERROR"
        ),
        new="return record.process_state is ProcessState.PROCESSED",
        tests=(
            "tests/unit/engine/test_compensation.py::test_a_step_under_way_is_waited_for_until_its_time_is_over",
        ),
        why="a task is called Undone with money taken",
    ),
    Mutant(
        name="undo-in-reverse-order",
        file="layers/core/roundsman/engine/compensation.py",
        old="            and _successors_settled(context, step)\n",
        new="",
        tests=("tests/unit/engine/test_compensation.py::test_a_chain_is_undone_from_its_end",),
        why="stock is released under a parcel that still leaves",
    ),
    Mutant(
        name="wait-before-an-unfenced-undo",
        file="layers/core/roundsman/engine/compensation.py",
        old="acts_until = None if fenced else context.decision.acts_until(step.name)",
        new="acts_until = None",
        tests=(
            "tests/unit/engine/test_compensation_times.py::test_an_unfenced_undo_waits_until_no_request_of_its_step_can_act",
        ),
        why="the charge lands after its refund",
    ),
    Mutant(
        name="skew-before-an-unfenced-undo",
        file="layers/core/roundsman/engine/compensation.py",
        old="not_before = None if acts_until is None else acts_until + SKEW",
        new="not_before = acts_until",
        tests=(
            "tests/unit/engine/test_compensation_times.py::test_an_unfenced_undo_waits_until_no_request_of_its_step_can_act",
        ),
        why="the same, by clocks that differ",
    ),
    Mutant(
        name="an-undo-knows-the-performs-key",
        file="layers/core/roundsman/engine/requests.py",
        old="perform_key=perform_key if undoes else None,",
        new="perform_key=None,",
        tests=(
            "tests/unit/engine/test_compensation.py::test_the_request_of_an_undo_has_its_own_key_and_what_the_compensation_needs",
        ),
        why="the undo cannot say what it undoes",
    ),
    Mutant(
        name="minimum-in-due-at",
        file="layers/core/roundsman/engine/due.py",
        old="due_at = min(task.due_at, at) if task.lane == lane else at",
        new="due_at = at",
        tests=("tests/unit/engine/test_due.py::test_within_the_open_lane_the_entry_only_falls",),
        why="an early deadline is overwritten by a late one",
    ),
    Mutant(
        name="due-of-what-is-under-way",
        file="layers/core/roundsman/engine/due.py",
        old=(
            "instants = [record.overdue_at for record in task.steps.values() if record.under_way]"
        ),
        new="instants: list[int | None] = []",
        tests=("tests/unit/engine/test_due.py::test_a_task_is_due_by_the_earliest_of_its_steps",),
        why="a lost request is found when the whole task is late",
    ),
    Mutant(
        name="due-of-what-waits",
        file="layers/core/roundsman/engine/due.py",
        old="    return record.not_before if waits else record.complete_by\n",
        new="    return None if waits else record.complete_by\n",
        tests=("tests/unit/engine/test_due.py::test_a_task_is_due_by_the_earliest_of_its_steps",),
        why="a lost timer is found when the whole task is late",
    ),
    Mutant(
        name="due-of-what-could-start",
        file="layers/core/roundsman/engine/due.py",
        old="    return record.not_before if waits else record.complete_by\n",
        new="    return record.not_before if waits else None\n",
        tests=("tests/unit/engine/test_due.py::test_a_task_is_due_by_the_earliest_of_its_steps",),
        why="a lost Start is found when the whole task is late",
    ),
    Mutant(
        name="due-of-the-task",
        file="layers/core/roundsman/engine/due.py",
        old="        instants.append(task.complete_by)\n",
        new="",
        tests=("tests/unit/engine/test_due.py::test_a_task_is_due_by_its_own_complete_by",),
        why="nobody looks when a task is late",
    ),
    Mutant(
        name="due-of-the-start",
        file="layers/core/roundsman/engine/due.py",
        old="instants.append(task.start_at if task.start_at > now else now + START_WITHIN)",
        new="instants.append(task.complete_by)",
        tests=("tests/unit/engine/test_due.py::test_a_scheduled_task_is_due_at_its_start",),
        why="a scheduled task starts when it should be complete",
    ),
    Mutant(
        name="due-of-what-is-owed",
        file="layers/core/roundsman/engine/due.py",
        old=("    if task.owed:\n        instants.append(now + START_WITHIN)\n"),
        new="",
        tests=("tests/unit/engine/test_due.py::test_what_is_owed_is_due_soon",),
        why="a status that was not sent is sent by chance",
    ),
    Mutant(
        name="owed-keeps-a-task-open",
        file="layers/core/roundsman/engine/due.py",
        old="return task.ended and not task.owed",
        new="return task.ended",
        tests=(
            "tests/unit/engine/test_due.py::test_an_ended_task_that_owes_something_stays_in_its_open_lane",
        ),
        why="completed is committed, and never sent",
    ),
    Mutant(
        name="owed-is-written-with-the-decision",
        file="layers/core/roundsman/engine/decision.py",
        old="owed=self.task.owed + self._newly_owed(state, version),",
        new="owed=self.task.owed,",
        tests=("tests/unit/engine/test_on_failure.py::test_an_end_is_told_once",),
        why="a crash between the decision and its alert loses the alert",
    ),
    Mutant(
        name="owed-is-cleared",
        file="layers/core/roundsman/scheduler/owed.py",
        old="    _clear(task, frozenset(sent + given_up), stands_in, tasks, clock)\n",
        new="",
        tests=(
            "tests/unit/scheduler/test_owed.py::test_an_orders_statuses_come_once_each_and_their_seq_rises",
        ),
        why="every status is sent again at every pass",
    ),
    Mutant(
        name="alerts-before-statuses",
        file="layers/core/roundsman/scheduler/owed.py",
        old='key=lambda owed: (owed.kind != "alert", owed.seq)',
        new='key=lambda owed: (owed.kind == "alert", owed.seq)',
        tests=(
            "tests/unit/scheduler/test_owed.py::test_requests_go_first_then_alerts_then_statuses",
        ),
        why="a slow reply queue delays an alert",
    ),
    Mutant(
        name="retention-zero-is-kept-while-owed",
        file="layers/core/roundsman/engine/due.py",
        old="return settled(task) and task.expires_at is not None and task.retain_for == 0",
        new=("return task.ended and task.state is not TaskState.ARCHIVED and task.retain_for == 0"),
        tests=(
            "tests/contract/test_removal.py::test_an_end_that_owes_something_is_kept_until_it_was_sent[memory]",
        ),
        why="a task is removed before its end was told",
    ),
)
