"""The guards against refused calls, records that cannot be read, and looks that come late."""

from tools.mutants.mutant import Mutant

SUPERVISION = "layers/core/roundsman/supervisor/supervisor.py"
CONTROL = "layers/core/roundsman/aws/dynamodb/control.py"
HOLDS = "layers/core/roundsman/aws/dynamodb/holds.py"
GROUPS = "layers/core/roundsman/aws/dynamodb/groups.py"
TRIES = "layers/core/roundsman/agents/attempt.py"
SUBMISSION = "layers/core/roundsman/submission/submission.py"
SCHEDULING = "layers/core/roundsman/scheduler/scheduler.py"

TESTS = "tests/unit/supervisor/test_supervisor_refused.py"
HOLD_TESTS = "tests/contract/test_holds.py"
MARK_TESTS = "tests/contract/test_marks.py"
LEASE_TESTS = "tests/contract/test_leases.py"
GROUP_TESTS = "tests/contract/test_groups.py"
PROBES = "tests/unit/agents/test_probes.py"
SUBMITTED = "tests/unit/submission/test_submission.py"
TIMERS = "tests/unit/scheduler/test_scheduler_timers.py"

REFUSED = (
    Mutant(
        name="a-refused-call-is-no-broken-record",
        file=SUPERVISION,
        old="except (TryAgain, SchemaTooNew, CallRefused) as problem:",
        new="except (TryAgain, SchemaTooNew) as problem:",
        tests=(f"{TESTS}::test_after_hours_of_refused_calls_the_first_pass_moves_everything_on",),
        why="a right that was lost for an hour delays orders for hours more",
    ),
    Mutant(
        name="a-refused-read-ends-the-visits",
        file=SUPERVISION,
        old="            report.blind = True\n",
        new="            pass\n",
        tests=(f"{TESTS}::test_what_is_refused_for_one_task_is_asked_for_no_other_in_that_pass",),
        why="each pass makes a refused call for every task that is due",
    ),
    Mutant(
        name="a-refusal-is-reported-once-a-pass",
        file=SUPERVISION,
        old="        if report.refused is None:\n",
        new="        if True:\n",
        tests=(f"{TESTS}::test_a_refused_call_is_reported_once_a_pass_and_not_once_a_task",),
        why="one lost right is ten thousand lines of the log",
    ),
    Mutant(
        name="a-refused-query-stops-no-pass",
        file=SUPERVISION,
        old=(
            "        except (TryAgain, CallRefused) as problem:\n"
            "            report.finished = False"
        ),
        new="        except TryAgain as problem:\n            report.finished = False",
        tests=(f"{TESTS}::test_a_refused_call_is_reported_once_a_pass_and_not_once_a_task",),
        why="the leases of the pass are not given back",
    ),
    Mutant(
        name="a-refused-tick-fails",
        file="layers/core/roundsman/aws/handlers/supervisor.py",
        old="        if refused:\n",
        new="        if False:\n",
        tests=(
            "tests/unit/aws/handlers/test_supervisor.py::test_a_tick_whose_calls_were_refused_fails_after_it_has_logged_what_it_did",
        ),
        why="nobody hears that the supervisor may do nothing",
    ),
    Mutant(
        name="nothing-is-put-off-for-long",
        file=SUPERVISION,
        old="LONGEST_POSTPONEMENT = 15 * MINUTE\n",
        new="LONGEST_POSTPONEMENT = 6 * 60 * MINUTE\n",
        tests=(
            "tests/world/test_supervision.py::test_a_record_that_was_taken_for_broken_is_looked_at_within_a_quarter_of_an_hour",
        ),
        why="a mended record waits for hours",
    ),
    Mutant(
        name="an-altered-plan-is-not-its-tasks-fault",
        file=SUPERVISION,
        old="        except UnreadableRecord as problem:\n            raise _PlanUnreadable",
        new="        except ZeroDivisionError as problem:\n            raise _PlanUnreadable",
        tests=(
            f"{TESTS}::test_a_plan_that_cannot_be_read_postpones_none_of_its_tasks_and_is_alerted_once",
        ),
        why="all orders of a workflow wait after their plan is restored",
    ),
    Mutant(
        name="a-mark-that-is-none-stops-nobody",
        file=CONTROL,
        old=(
            "            except UnreadableRecord as problem:\n"
            "                self._on_unreadable(problem)\n        return marks\n"
        ),
        new="            except OSError:\n                continue\n        return marks\n",
        tests=(
            f"{MARK_TESTS}::test_a_mark_that_is_none_is_passed_over_and_the_next_takes_its_place[moto-text]",
        ),
        why="one attribute stops every decision",
    ),
    Mutant(
        name="a-mark-that-is-none-gives-way",
        file=CONTROL,
        old='"NOT attribute_type(#queue.ReadAt, :n) OR NOT attribute_type(#queue.ReadSentAt, :n)"',
        new=(
            '"attribute_not_exists(#queue)'
            ' OR (attribute_not_exists(#queue) AND attribute_type(#queue.ReadAt, :n))"'
        ),
        tests=(
            f"{MARK_TESTS}::test_a_mark_that_is_none_is_passed_over_and_the_next_takes_its_place[moto-empty]",
        ),
        why="of that queue nothing is ever known again",
    ),
    Mutant(
        name="a-hold-that-cannot-be-read-is-in-force",
        file=HOLDS,
        old="            return unreadable_hold(",
        new="            return None and unreadable_hold(",
        tests=(
            f"{HOLD_TESTS}::test_a_hold_that_cannot_be_read_holds_its_own_agent_until_it_is_released[moto-empty-operator]",
        ),
        why="a service that a person has put on hold is called",
    ),
    Mutant(
        name="a-hold-that-nobody-could-release-holds-nobody",
        file=HOLDS,
        old="if not (agent or workflow) or (kind != OPERATOR and (of_orders or kind != BREAKER)):",
        new="if False:",
        tests=(
            f"{HOLD_TESTS}::test_a_name_that_is_no_agent_and_kind_holds_nobody_and_each_is_reported[moto]",
        ),
        why="an agent is held for ever",
    ),
    Mutant(
        name="a-hold-that-cannot-be-read-gives-way",
        file=HOLDS,
        old='NONE_LASTS_LONGER = f"NOT ({CAN_BE_READ}) OR ',
        new='NONE_LASTS_LONGER = f"(attribute_not_exists(#hold) AND NOT ({CAN_BE_READ})) OR ',
        tests=(
            f"{HOLD_TESTS}::test_a_hold_that_cannot_be_read_gives_way_to_the_next_of_its_kind[moto-empty-breaker]",
        ),
        why="a breaker can never hold its agent again",
    ),
    Mutant(
        name="a-lease-that-is-none-gives-way",
        file=CONTROL,
        old='ConditionExpression=f"{NO_SUCH_ROW} OR {VERSION_IS_NONE}",',
        new='ConditionExpression=f"{NO_SUCH_ROW} AND {VERSION_IS_NONE}",',
        tests=(
            f"{LEASE_TESTS}::test_what_of_the_leases_cannot_be_read_counts_as_none_and_gives_way_to_the_next_write[moto-Version]",
        ),
        why="supervisors go without leases until a person mends the row",
    ),
    Mutant(
        name="the-shards-that-have-leases-are-counted",
        file=CONTROL,
        old='self._number(reader, "Count", max(by_shard, default=-1) + 1)',
        new='self._number(reader, "Count", 0)',
        tests=(
            f"{LEASE_TESTS}::test_what_of_the_leases_cannot_be_read_counts_as_none_and_gives_way_to_the_next_write[moto-Count]",
        ),
        why="tasks in shards beyond DueShards are forgotten",
    ),
    Mutant(
        name="the-number-of-groups-is-counted-anew",
        file=GROUPS,
        old='    return "N" not in row.get(OPEN, {"N": "0"})\n',
        new="    return False\n",
        tests=(f"{GROUP_TESTS}::test_a_number_of_groups_that_is_none_is_counted_anew[moto]",),
        why="no failure group can be opened, so nothing is alerted any more",
    ),
    Mutant(
        name="the-end-of-a-short-time-is-looked-at",
        file=SUBMISSION,
        old=(
            "        self._send_start(task)\n        self._send_end(task)\n"
            "        return delivered\n\n    def _announce_again"
        ),
        new="        self._send_start(task)\n        return delivered\n\n    def _announce_again",
        tests=(f"{SUBMITTED}::test_a_task_with_little_time_is_looked_at_when_that_is_over",),
        why="a deadline of seconds is noticed a minute late",
    ),
    Mutant(
        name="a-near-deadline-is-looked-at",
        file=SUBMISSION,
        old="delay_until(task.perform_by, self._clock())",
        new="delay_until(task.complete_by, self._clock())",
        tests=(f"{SUBMITTED}::test_a_task_whose_deadline_is_earlier_is_looked_at_at_its_deadline",),
        why="a deadline of seconds is noticed a minute late",
    ),
    Mutant(
        name="the-near-deadline-of-what-begins-is-looked-at",
        file=SCHEDULING,
        old="delay_until(task.perform_by, self._clock())",
        new="delay_until(task.complete_by, self._clock())",
        tests=(f"{TIMERS}::test_a_task_that_begins_with_a_deadline_is_looked_at_at_the_deadline",),
        why="a deadline of seconds is noticed a minute late",
    ),
    Mutant(
        name="no-start-after-the-deadline",
        file="layers/core/roundsman/submission/processing.py",
        old="        if start_at > now + deadline:\n",
        new="        if start_at > now + deadline + deadline:\n",
        tests=(
            "tests/unit/submission/test_processing.py::test_a_start_later_than_the_deadline_of_the_workflow_is_refused_at_its_path",
        ),
        why="an order is accepted that can only fail",
    ),
    Mutant(
        name="a-step-fits-the-deadline",
        file="layers/core/roundsman/definition/workflow.py",
        old="if self.deadline is not None and step.complete_within > self.deadline:",
        new="if self.deadline is not None and step.complete_within > self.complete_within:",
        tests=(
            "tests/unit/definition/test_workflow.py::test_a_definition_that_cannot_run_is_refused_with_what_to_change"
            "[a step longer than the deadline]",
        ),
        why="no attempt of the step ever has its whole time",
    ),
    Mutant(
        name="a-lost-look-keeps-no-order-out",
        file=SUBMISSION,
        old="send_inspect(task.task_id, delay=delay)\n        except TryAgain:\n",
        new="send_inspect(task.task_id, delay=delay)\n        except OSError:\n",
        tests=(
            f"{SUBMITTED}::test_a_look_at_the_end_that_cannot_be_sent_now_keeps_no_order_from_being_taken",
        ),
        why="an order is announced twice for a courtesy that failed",
    ),
    Mutant(
        name="a-look-comes-rather-late",
        file="layers/core/roundsman/scheduler/lookahead.py",
        old="    delay = max(0, at + RATHER_LATE - now)\n",
        new="    delay = max(0, at - now)\n",
        tests=(
            f"{SUBMITTED}::test_a_start_within_a_quarter_of_an_hour_is_a_message_delayed_to_just_after_it",
        ),
        why="a start that comes early by another clock starts nothing",
    ),
    Mutant(
        name="a-time-that-a-person-gives-is-looked-at",
        file=SCHEDULING,
        old="        by_command = changed and task.command_ids != before.command_ids\n",
        new="        by_command = False\n",
        tests=(
            f"{TIMERS}::test_a_task_whose_time_a_person_makes_a_little_longer_is_looked_at_when_that_is_over",
        ),
        why="an extended deadline is noticed a minute late",
    ),
    Mutant(
        name="a-time-that-begins-late-is-looked-at",
        file=SCHEDULING,
        old=(
            "        begins = before.state is TaskState.SCHEDULED "
            "and task.state is not TaskState.SCHEDULED\n"
        ),
        new="        begins = False\n",
        tests=(
            f"{TIMERS}::test_a_task_of_tomorrow_with_little_time_is_looked_at_when_that_is_over",
        ),
        why="a deadline of seconds is noticed a minute late where the task was scheduled",
    ),
    Mutant(
        name="a-probe-that-cannot-be-asked-strands-no-undo",
        file=TRIES,
        old="            if not self._undoes_whatever_happened or may_pass(error):\n",
        new="            if True:\n",
        tests=(
            f"{PROBES}::test_a_probe_that_cannot_be_asked_strands_no_undo_of_a_service_that_fences",
        ),
        why="money stays taken though the refund would be right",
    ),
    Mutant(
        name="a-probe-that-fails-for-now-is-waited-for",
        file=TRIES,
        old="            if not self._undoes_whatever_happened or may_pass(error):\n",
        new="            if not self._undoes_whatever_happened:\n",
        tests=(
            f"{PROBES}::test_while_a_probe_fails_for_now_the_undo_of_a_service_that_fences_waits_for_its_word",
        ),
        why="a compensation is called without the result that it could have had",
    ),
    Mutant(
        name="an-unfenced-undo-waits-for-its-probe",
        file=TRIES,
        old='        return self.request.operation == "undo" and self.fences_late_performs\n',
        new='        return self.request.operation == "undo"\n',
        tests=(
            f"{PROBES}::test_a_probe_that_cannot_know_proves_nothing_so_nothing_is_done_and_nothing_given_up",
        ),
        why="what never happened is taken back",
    ),
    Mutant(
        name="a-perform-waits-for-its-probe",
        file=TRIES,
        old='        return self.request.operation == "undo" and self.fences_late_performs\n',
        new="        return self.fences_late_performs\n",
        tests=(
            f"{PROBES}::test_a_perform_of_a_service_that_fences_waits_for_its_probe_all_the_same",
        ),
        why="a charge whose outcome nobody knows is made again",
    ),
    Mutant(
        name="an-unclear-answer-strands-no-undo",
        file=TRIES,
        old="        if result is not None and result.error is not None and self._undoes",
        new="        if False and self._undoes",
        tests=(
            f"{PROBES}::test_a_probe_that_cannot_be_asked_strands_no_undo_of_a_service_that_fences",
        ),
        why="a defect of the probe leaves money taken",
    ),
    Mutant(
        name="a-refused-credential-fails-no-order",
        file="layers/core/roundsman/agents/http.py",
        old="    if status in CREDENTIAL_STATUSES and name not in refusals:\n",
        new="    if name in refusals and status in CREDENTIAL_STATUSES:\n",
        tests=(
            "tests/unit/agents/test_http_answers.py::test_a_refused_credential_is_no_refusal_of_the_order",
        ),
        why="an expired key undoes every order",
    ),
    Mutant(
        name="a-probe-that-is-not-served-strands-no-undo",
        file=TRIES,
        old="                if not self._undoes_whatever_happened:\n                    raise\n",
        new="                raise\n",
        tests=(
            "tests/world/test_effects.py::test_a_service_that_answers_405_to_its_probe_strands_no_undo",
        ),
        why="an undo fails for a probe that it does not need",
    ),
)
