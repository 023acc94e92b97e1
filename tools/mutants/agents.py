"""The guards of steps with several agents, of plans that are missing, and of what is over."""

from tools.mutants.mutant import Mutant

AGENTS = (
    Mutant(
        name="the-first-agents-undo-gets-no-answer-of-the-second",
        file="layers/core/roundsman/engine/compensation.py",
        old="        failure_count=0,\n        outcome_unknown=True,\n        error=None,",
        new="        failure_count=0,\n        error=None,",
        tests=(
            "tests/unit/engine/test_routing_leaving.py::test_the_undo_at_an_agent_before_is_not_given_what_the_later_one_answered",
        ),
        why="a reservation is looked for where it never was, and the one that stands is left",
    ),
    Mutant(
        name="an-ending-task-settles-nothing-to-go-on",
        file="layers/core/roundsman/engine/attempts.py",
        old="record.process_state is ProcessState.PROCESSING and not context.decision.ending",
        new="record.process_state is ProcessState.PROCESSING",
        tests=(
            "tests/unit/engine/test_routing_leaving.py::test_a_step_that_fails_while_its_task_is_ending_is_not_settled_to_go_on",
        ),
        why="a task that has failed waits for an undo that nobody asked for",
    ),
    Mutant(
        name="an-undo-without-its-plan-is-a-persons-matter",
        file="layers/core/roundsman/engine/decision.py",
        old="if plan is None and (ending.undo or ProcessState.UNDOING in states):",
        new="if plan is None and ending.undo:",
        tests=(
            "tests/unit/engine/test_machine_missing_plan.py::test_a_cancelled_task_whose_undo_at_one_agent_cannot_go_on_waits_for_a_person",
        ),
        why="each look at such a task fails, for ever",
    ),
    Mutant(
        name="what-is-not-undone-as-a-whole-goes-on",
        file="layers/core/roundsman/engine/decision.py",
        old="if record.process_state is ProcessState.UNDOING and not undone:",
        new=(
            "if record.process_state is ProcessState.UNDOING "
            "and self.goes_on_after_undo(record) and not undone:"
        ),
        tests=(
            "tests/unit/engine/test_machine_missing_plan.py::test_a_task_whose_undo_was_broken_off_can_be_cancelled_as_it_stands",
        ),
        why="a task that is cancelled as it stands is shown as being undone",
    ),
    Mutant(
        name="only-an-open-tasks-due-instant-is-raised",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="        if not settled(moved_on):\n            moved_on",
        new="        if True:\n            moved_on",
        tests=(
            "tests/unit/supervisor/test_supervisor_index.py::test_a_task_that_a_pass_ends_stands_in_its_lane_at_the_instant_of_its_end",
        ),
        why="what is over is listed by a wrong age",
    ),
    Mutant(
        name="the-supervisor-leaves-what-is-settled",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="if task is None or settled(task):",
        new="if task is None:",
        tests=(
            "tests/unit/supervisor/test_supervisor_index.py::test_an_entry_that_lags_behind_the_end_of_its_task_costs_one_read",
        ),
        why="every task that is over costs another read and a refused write",
    ),
    Mutant(
        name="what-may-pass-outweighs-a-refusal",
        file="layers/core/roundsman/aws/sqs/outgoing.py",
        old="raise min(failures, key=lambda failure: not isinstance(failure, TryAgain))",
        new="raise failures[0]",
        tests=(
            "tests/contract/test_outbox.py::test_what_may_pass_is_raised_before_what_will_not",
            "tests/contract/test_outbox.py::test_a_batch_accepted_in_part_is_not_a_batch_that_was_sent",
        ),
        why="a request that could be sent a moment later is given up with one that never can",
    ),
)
