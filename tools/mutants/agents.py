"""The guards of the index of due tasks, and of messages that SQS refuses."""

from tools.mutants.mutant import Mutant

AGENTS = (
    Mutant(
        name="only-an-open-tasks-due-instant-is-raised",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="        if not is_closed(moved_on):\n            moved_on",
        new="        if True:\n            moved_on",
        tests=(
            "tests/unit/supervisor/test_supervisor_index.py::test_a_task_that_a_pass_ends_stands_in_its_lane_at_the_instant_of_its_end",
        ),
        why="what is over is listed by a wrong age",
    ),
    Mutant(
        name="the-supervisor-leaves-what-is-settled",
        file="layers/core/roundsman/supervisor/supervisor.py",
        old="if task is None or is_closed(task):",
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
    Mutant(
        name="only-what-is-reported-as-taken-was-sent",
        file="layers/core/roundsman/aws/sqs/outgoing.py",
        old='sent = {each["Id"] for each in answer.get("Successful", ())}',
        new="failed = {each['Id'] for each in answer.get('Failed', ())}\n"
        "    sent = {str(n) for n in range(len(batch))} - failed",
        tests=(
            "tests/contract/test_outbox.py::test_what_a_batch_does_not_report_as_taken_is_sent_once_more_by_itself[True]",
        ),
        why="a request of which nothing is known counts as sent, until a supervisor misses it",
    ),
)
