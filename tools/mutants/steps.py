"""The guards of the engine's modules that `tools.mutants.engine` does not check yet."""

from tools.mutants.mutant import Mutant

STEPS = (
    Mutant(
        name="results-fit-the-record",
        file="layers/core/roundsman/engine/steps.py",
        old="    if total > RESULTS_LIMIT:\n",
        new="    if total < 0:\n",
        tests=(
            "tests/unit/engine/test_machine_replies.py::test_of_results_that_together_would_not_fit_that_which_crosses_the_line_is_left_out",
        ),
        why="a reply that crosses 400 KB fails for ever",
    ),
    Mutant(
        name="fan-out-tolerates",
        file="layers/core/roundsman/engine/fan_out.py",
        old=("    if failed > may_fail:\n        return None\n"),
        new="",
        tests=(
            "tests/unit/engine/test_fan_out_tolerance.py::test_one_failure_more_is_the_tasks_and_the_undo_of_the_others_goes_on",
        ),
        why="a task completes though too many of its items failed",
    ),
    Mutant(
        name="task-complete-by",
        file="layers/core/roundsman/engine/task_deadline.py",
        old="if context.decision.ending or task.perform_by > context.now or context.all_done():",
        new="if context.decision.ending or task.perform_by or context.all_done():",
        tests=(
            "tests/unit/engine/test_machine_inspect.py::test_a_task_that_is_not_complete_in_time_is_undone_where_its_plan_says_so",
        ),
        why="a task outlives its time unnoticed",
    ),
    Mutant(
        name="ending-claims-nothing",
        file="layers/core/roundsman/engine/steps.py",
        old=("    if context.decision.ending:\n        return []\n"),
        new="",
        also=(
            (
                "            if context.decision.ending:\n                continue\n",
                "",
            ),
        ),
        tests=(
            "tests/unit/engine/test_on_failure.py::test_the_step_under_way_may_still_succeed_but_nothing_follows_it",
        ),
        why="a failed task goes on doing what must be undone",
    ),
    Mutant(
        name="point-of-no-return",
        file="layers/core/roundsman/engine/on_failure.py",
        old="return isinstance(final, UndoPlan) and not past_no_return(context)",
        new="return isinstance(final, UndoPlan)",
        tests=(
            "tests/unit/engine/test_attempts_failures.py::test_after_the_point_of_no_return_nothing_is_undone",
        ),
        why="what has shipped is refunded",
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
)
