"""The guards of the pure machine: what is claimed, counted, undone and ended."""

from tools.mutants.mutant import Mutant

MACHINE = (
    Mutant(
        name="lock-fence",
        file="layers/core/roundsman/engine/machine.py",
        old="current = timely and record.under_way and record.locked_by == event.lock",
        new="current = timely and record.under_way",
        tests=(
            "tests/unit/engine/test_machine_replies.py::test_a_late_failure_of_an_earlier_attempt_changes_nothing",
        ),
        why="an answer to an attempt that is over counts for the one under way",
    ),
    Mutant(
        name="key-check",
        file="layers/core/roundsman/engine/machine.py",
        old=('return "" if event.key == key else f"{event.step}: reply under another key ignored"'),
        new='return "" if event.key else f"{key}: reply under another key ignored"',
        tests=(
            "tests/unit/engine/test_machine_replies.py::test_a_reply_under_another_key_changes_nothing",
        ),
        why="an answer about another effect settles this one",
    ),
    Mutant(
        name="late-success-ends-with-the-task",
        file="layers/core/roundsman/engine/machine.py",
        old=(
            "    if operation_of(record) == PERFORM and context.decision.ending:\n"
            "        return False\n"
        ),
        new="",
        tests=(
            "tests/unit/engine/test_on_failure.py::test_a_late_success_of_a_step_that_is_not_under_way_is_not_taken_any_more",
        ),
        why="a task that is being undone goes forward again",
    ),
    Mutant(
        name="predecessors-first",
        file="layers/core/roundsman/engine/steps.py",
        old="return all(context.decision.step(name).process_state in DONE for name in step.after)",
        new="return True",
        tests=(
            "tests/unit/engine/test_steps_parallel.py::test_a_step_waits_for_all_that_it_comes_after",
        ),
        why="a card is charged for stock that nobody has reserved",
    ),
    Mutant(
        name="own-claims-only",
        file="layers/core/roundsman/engine/attempts.py",
        old="if record.under_way and claimant.made(record.locked_by) and not record.waiting:",
        new="if record.under_way and not record.waiting:",
        tests=(
            "tests/unit/engine/test_machine_replies.py::test_one_repeated_reply_before_twenty_parallel_steps_sends_no_request_twice",
        ),
        why="one repeated reply makes a hundred requests of twenty",
    ),
    Mutant(
        name="own-claims-are-sent-again",
        file="layers/core/roundsman/engine/attempts.py",
        old="if record.under_way and claimant.made(record.locked_by) and not record.waiting:",
        new="if not record and claimant:",
        tests=(
            "tests/unit/engine/test_steps_start.py::test_a_redelivered_start_sends_its_own_request_again_and_stores_nothing",
        ),
        why="a claim whose request was never sent waits for its complete-by",
    ),
    Mutant(
        name="a-callback-is-not-asked-for-again",
        file="layers/core/roundsman/engine/attempts.py",
        old="if record.under_way and claimant.made(record.locked_by) and not record.waiting:",
        new="if record.under_way and claimant.made(record.locked_by):",
        tests=(
            "tests/unit/engine/test_attempts_long_steps.py::test_the_request_of_a_step_that_waits_is_not_sent_again",
        ),
        why="a person is asked twice",
    ),
    Mutant(
        name="lag-in-complete-by",
        file="layers/core/roundsman/engine/attempts.py",
        old="read_at = context.now + behind",
        new="read_at = context.now",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_the_time_that_an_attempt_was_given_is_the_measure_of_a_backlog",
        ),
        why="every request of a backlog expires unread",
    ),
    Mutant(
        name="never-read-is-not-counted",
        file="layers/core/roundsman/engine/attempts.py",
        old="return excused if operation_of(record) == UNDO else record.uncounted_timeouts\n",
        new="return None\n",
        tests=(
            "tests/unit/engine/test_machine_inspect.py::test_a_request_that_its_agent_never_read_is_sent_again_without_counting",
        ),
        why="overload fails healthy orders",
    ),
    Mutant(
        name="held-is-not-counted",
        file="layers/core/roundsman/engine/machine.py",
        old="case Outcome.HELD if not counts_as_failure(context, step, event):",
        new="case Outcome.HELD if context.decision.ending:",
        tests=(
            "tests/unit/engine/test_agent_holds.py::test_what_its_agent_gives_back_waits_uncounted_and_its_last_copy_may_still_act",
        ),
        why="an open circuit burns every attempt",
    ),
    Mutant(
        name="nothing-is-claimed-for-a-held-agent",
        file="layers/core/roundsman/engine/routing.py",
        old="taking = [agent for agent in candidates(context, step) if not context.is_held(agent)]",
        new="taking = list(candidates(context, step))",
        tests=(
            "tests/unit/engine/test_agent_holds.py::test_nothing_is_claimed_for_an_agent_that_is_held",
        ),
        why="a service that an operator has stopped is called",
    ),
    Mutant(
        name="a-hold-moves-the-tasks-end",
        file="layers/core/roundsman/engine/machine.py",
        old="    extend_by_holds(context.decision)",
        new="",
        tests=(
            "tests/unit/engine/test_agent_holds.py::test_the_tasks_clock_stands_still_while_a_step_is_held",
        ),
        why="orders fail of the time in which their agent was held",
    ),
    Mutant(
        name="results-fit-the-record",
        file="layers/core/roundsman/engine/steps.py",
        old="    if total > RESULTS_LIMIT:\n",
        new="    if total < 0:\n",
        tests=(
            "tests/unit/engine/test_machine_replies.py::test_results_that_together_would_not_fit_fail_the_step_that_crosses_the_line",
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
        file="layers/core/roundsman/engine/on_failure.py",
        old="if context.decision.ending or task.complete_by > context.now or context.all_done():",
        new="if context.decision.ending or task.complete_by or context.all_done():",
        tests=(
            "tests/unit/engine/test_machine_inspect.py::test_a_task_that_is_not_complete_in_time_is_undone_where_its_plan_says_so",
        ),
        why="a task outlives its time unnoticed",
    ),
    Mutant(
        name="a-command-acts-once",
        file="layers/core/roundsman/engine/decision.py",
        old="return event.asked.command_id in self.task.command_ids",
        new="return not event",
        tests=(
            "tests/unit/engine/test_operator.py::test_a_resubmission_that_comes_again_after_a_second_failure_changes_nothing",
        ),
        why="a redelivered resubmission acts on a second failure",
    ),
    Mutant(
        name="seen-version",
        file="layers/core/roundsman/engine/operator.py",
        old="if asked.seen_version not in (None, decision.before.version):",
        new="if asked.seen_version == 0:",
        tests=(
            "tests/unit/engine/test_operator.py::test_a_command_acts_on_the_version_its_sender_saw_and_on_no_other",
        ),
        why="an operator acts on what is not so any more",
    ),
    Mutant(
        name="round-in-the-key",
        file="layers/core/roundsman/model/task.py",
        old=("    if record.round > 1:\n        parts.append(str(record.round))\n"),
        new="",
        tests=(
            "tests/unit/engine/test_operator_resubmit.py::test_a_task_that_was_undone_begins_anew_only_if_that_is_said_and_under_new_keys",
        ),
        why="a refunded charge is answered as done",
    ),
    Mutant(
        name="agent-in-the-key",
        file="layers/core/roundsman/model/task.py",
        old=("    if record.agent:\n        parts.append(record.agent)\n"),
        new="",
        tests=(
            "tests/unit/engine/test_routing.py::test_a_reply_under_the_key_of_an_agent_that_was_left_changes_nothing",
        ),
        why="two services know two effects by one key",
    ),
    Mutant(
        name="a-long-queue-is-waited-for",
        file="layers/core/roundsman/engine/attempts.py",
        old="    until = started_at + view.lag + given\n",
        new="    until = started_at + given\n",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_a_request_that_may_be_in_its_queue_still_has_more_time_and_is_not_sent_again",
            "tests/benchmarks/test_overload.py::test_a_request_whose_undo_waits_for_nothing_is_sent_once",
        ),
        why="each order of a backlog is sent again and again",
    ),
    Mutant(
        name="what-was-read-is-not-waited-for-without-end",
        file="layers/core/roundsman/engine/attempts.py",
        old="if _was_read(record, view) and record.uncounted_timeouts >= MAX_UNCOUNTED_TIMEOUTS:\n",
        new="if _was_read(record, view) and not MAX_UNCOUNTED_TIMEOUTS:\n",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_a_request_that_was_read_by_all_signs_is_waited_for_three_times",
        ),
        why="an agent that dies at an order in a growing queue is found late",
    ),
    Mutant(
        name="an-undo-that-nobody-reads-ends",
        file="layers/core/roundsman/engine/attempts.py",
        old="return excused if operation_of(record) == UNDO else record.uncounted_timeouts\n",
        new="return record.uncounted_timeouts\n",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_an_undo_that_nobody_reads_fails_in_the_end_and_a_person_is_told",
        ),
        why="an undo is sent for ever, and nobody hears of it",
    ),
    Mutant(
        name="patience-only-where-nothing-waits-for-it",
        file="layers/core/roundsman/engine/request_deadlines.py",
        old="return step.compensation is not None and step.compensation.fences_late_performs",
        new="return True",
        tests=(
            "tests/unit/engine/test_compensation_times.py::test_an_unfenced_undo_waits_until_no_request_of_its_step_can_act",
        ),
        why="every undo that is not fenced waits ten times as long",
    ),
    Mutant(
        name="a-patient-request-is-waited-for-to-its-end",
        file="layers/core/roundsman/engine/request_deadlines.py",
        old="return max(by, min(at, task_ends_at), record.acts_until or 0)",
        new="return max(by, min(at, task_ends_at))",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_an_undo_that_is_not_fenced_waits_for_the_very_end_of_its_performs_request",
        ),
        why="a request that was to wait in a long queue dies in it",
    ),
    Mutant(
        name="an-undo-knows-that-a-request-has-patience",
        file="layers/core/roundsman/engine/attempts.py",
        old="        acts_until = max(acts_until or 0, ends_by)\n",
        new="        acts_until = max(acts_until or 0, complete_by)\n",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_an_undo_that_is_not_fenced_waits_for_the_very_end_of_its_performs_request",
            "tests/benchmarks/test_overload.py::test_what_is_not_fenced_is_sent_fewer_than_three_times",
        ),
        why="what is not fenced is sent for each complete-by that its queue is long",
    ),
    Mutant(
        name="a-copy-may-act-until-its-patience-ends",
        file="layers/core/roundsman/engine/decision.py",
        old="return ends_at(plan.steps[name], record, record.complete_by, self.task.complete_by)",
        new="return record.complete_by",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_no_fresh_key_is_given_while_a_patient_request_may_act",
        ),
        why="an effect happens under two keys",
    ),
    Mutant(
        name="a-slow-readers-lag-is-news",
        file="layers/core/roundsman/model/queue_lag.py",
        old="min(max(LAG_VALID_FOR, 2 * min(apart, waited)), LAG_VALID_AT_MOST)",
        new="LAG_VALID_FOR",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_the_lag_of_a_slow_reader_is_news_until_it_can_have_read_again",
            "tests/benchmarks/test_overload.py::test_no_healthy_order_fails_of_a_long_queue_and_no_attempt_of_one_is_counted",
        ),
        why="the queue of a slow service is taken for empty",
    ),
    Mutant(
        name="a-hold-does-not-say-that-a-queue-was-read",
        file="layers/core/roundsman/model/holds.py",
        old="known = found.get(queue, UNREAD)",
        new="known = found.get(queue, AgentView())",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_a_queue_of_which_only_a_hold_is_known_was_never_read",
        ),
        why="an attempt on an agent that is on hold counts, though it was never sent",
    ),
)
