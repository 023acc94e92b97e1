"""Guards of what happens while the scheduler is behind or down."""

from tools.mutants.mutant import Mutant

_WATCH = "layers/core/roundsman/scheduler/queue_watch.py"
_AHEAD = "layers/core/roundsman/scheduler/lookahead.py"
_ARRIVED = "layers/core/roundsman/scheduler/arrived.py"
_SCHEDULER = "layers/core/roundsman/scheduler/scheduler.py"
_QUEUES = "layers/core/roundsman/model/scheduler_queues.py"
_SUPERVISOR = "layers/core/roundsman/supervisor/supervisor.py"
_DEPTHS = "layers/core/roundsman/aws/sqs/depths.py"
_CONTROL = "layers/core/roundsman/aws/dynamodb/control.py"

_OF_WATCH = "tests/unit/scheduler/test_queue_watch.py::"
_OF_AHEAD = "tests/unit/scheduler/test_lookahead.py::"
_OF_MARKS = "tests/unit/scheduler/test_read_marks.py::"
_OF_QUEUES = "tests/unit/model/test_scheduler_queues.py::"
_OF_PASSES = "tests/unit/supervisor/test_supervisor_behind.py::"
_OF_DEPTHS = "tests/unit/aws/sqs/test_depths.py::"
_OF_BOARD = "tests/contract/test_marks.py::"

BEHIND: tuple[Mutant, ...] = (
    # --- Looks at the queues ---
    Mutant(
        name="a-task-of-which-nothing-is-late-costs-no-look",
        file=_WATCH,
        old="if not agents and not (self._in_passes and starts_late(task, now)):",
        new="if plan is None:",
        tests=(f"{_OF_WATCH}test_a_task_of_which_nothing_is_late_costs_no_look",),
        why="every inspection of a healthy order costs a request",
    ),
    Mutant(
        name="only-a-supervisor-looks-at-the-schedulers-queue",
        file=_WATCH,
        old="commands_wait = self._in_passes and self._look(COMMANDS).visible",
        new="commands_wait = self._look(COMMANDS).visible",
        tests=(f"{_OF_WATCH}test_only_a_supervisor_looks_at_the_schedulers_queue",),
        why="the scheduler makes a request that its role does not allow",
    ),
    Mutant(
        name="commands-that-wait-ask-for-a-confirmation",
        file=_WATCH,
        old="slow = commands_wait or QueueView(",
        new="slow = QueueView(",
        tests=(
            f"{_OF_WATCH}test_an_empty_queue_must_be_confirmed_while_commands_wait_or_are_read_late",
            f"{_OF_PASSES}test_while_the_scheduler_is_down_a_timeout_counts_after_a_minute_of_empty_looks",
        ),
        why="one wrong zero of SQS counts a timeout while the scheduler is down",
    ),
    Mutant(
        name="commands-that-are-read-late-ask-for-a-confirmation",
        file=_WATCH,
        old="slow = commands_wait or QueueView(marks.get(COMMANDS)).is_behind(now)",
        new="slow = commands_wait",
        tests=(
            f"{_OF_WATCH}test_an_empty_queue_must_be_confirmed_while_commands_wait_or_are_read_late",
        ),
        why="one wrong zero of SQS counts a timeout while the scheduler is behind",
    ),
    Mutant(
        name="of-a-queue-that-nobody-may-count-only-the-mark-is-known",
        file=_WATCH,
        old="        if not look.readable:\n            return QueueView(mark)\n",
        new="",
        tests=(f"{_OF_WATCH}test_of_a_queue_that_nobody_may_count_only_the_mark_is_known",),
        why="where the right to count is missing, no timeout ever counts",
    ),
    Mutant(
        name="where-no-wish-may-be-stored-nothing-is-known",
        file=_WATCH,
        old="        except CallRefused:\n            return False\n        return True",
        new="        except CallRefused:\n            return True\n        return True",
        tests=(f"{_OF_WATCH}test_where_no_wish_may_be_stored_nothing_is_known",),
        why="a timeout waits for a mark that nobody writes",
    ),
    Mutant(
        name="a-wish-is-stored-once-a-minute",
        file=_WATCH,
        old="if wanted is not None and now - wanted.read_at < WANTED_AGAIN_AFTER:",
        new="if False:",
        tests=(f"{_OF_WATCH}test_a_wish_is_stored_at_most_once_a_minute",),
        why="each late task costs a write of the one row of marks",
    ),
    Mutant(
        name="a-mark-is-wanted-only-of-a-queue-with-messages",
        file=_WATCH,
        old="if look.empty_since is None and not self._want_mark(",
        new="if not self._want_mark(",
        tests=(
            f"{_OF_WATCH}test_a_mark_is_wanted_of_a_queue_with_messages_and_not_of_an_empty_one",
        ),
        why="each timeout of a dead agent makes every reply write a mark",
    ),
    Mutant(
        name="a-look-is-kept",
        file=_WATCH,
        old="if before is not None and (",
        new="if before is None and (",
        tests=(
            f"{_OF_WATCH}test_a_scheduler_keeps_a_look_for_five_seconds",
            f"{_OF_WATCH}test_a_pass_looks_once_at_each_queue_for_any_number_of_tasks",
            f"{_OF_PASSES}test_a_pass_looks_once_at_each_queue",
        ),
        why="ten thousand late tasks cost ten thousand requests a pass",
    ),
    Mutant(
        name="each-pass-looks-anew",
        file=_SUPERVISOR,
        old="        self._queues.forget()\n",
        new="",
        tests=(f"{_OF_PASSES}test_a_pass_looks_once_at_each_queue",),
        why="a queue that was empty an hour ago counts as empty",
    ),
    Mutant(
        name="a-queue-that-cannot-be-counted-now-may-have-messages",
        file=_WATCH,
        old="return _Look(now, readable=True, visible=True)",
        new="return _Look(now, readable=False)",
        tests=(
            f"{_OF_WATCH}test_of_a_queue_that_cannot_be_counted_now_is_not_known_that_it_is_empty",
            f"{_OF_WATCH}test_commands_may_wait_in_a_queue_that_cannot_be_counted_now",
        ),
        why="a throttled call counts the timeouts of orders that succeeded",
    ),
    Mutant(
        name="a-refused-look-fails-no-visit",
        file=_WATCH,
        old="        except CallRefused:\n            return _Look(now, readable=False)\n",
        new="",
        tests=(f"{_OF_WATCH}test_of_a_queue_that_nobody_may_count_only_the_mark_is_known",),
        why="a stack whose roles are older than its code counts no timeout at all",
    ),
    Mutant(
        name="a-queue-is-empty-since-the-first-such-look",
        file=_WATCH,
        old="(now if since is None else since) if depth.empty else None",
        new="now if depth.empty else None",
        tests=(
            f"{_OF_WATCH}test_an_empty_queue_is_empty_since_the_first_look_that_found_it_so",
            f"{_OF_PASSES}test_while_the_scheduler_is_down_a_timeout_counts_after_a_minute_of_empty_looks",
        ),
        why="while the scheduler is down, no timeout ever counts",
    ),
    Mutant(
        name="the-lag-is-that-of-marks-of-reading",
        file=_WATCH,
        old="for key, mark in self._board.marks().items() if is_read_mark(key)]",
        new="for key, mark in self._board.marks().items()]",
        tests=(f"{_OF_WATCH}test_the_lag_of_the_scheduler_is_the_longest_that_a_mark_shows",),
        why="a wish for a mark is taken for a backlog",
    ),
    # --- Look-ahead ---
    Mutant(
        name="a-task-whose-inspect-was-not-handled-gets-no-other",
        file=_AHEAD,
        old="if start_waits or (waits and sent is not None and sent <= now - HANDLED_WITHIN):",
        new="if start_waits:",
        tests=(
            f"{_OF_AHEAD}test_a_task_whose_inspect_should_have_been_handled_gets_no_further_one",
        ),
        why="each pass puts one more message into the queue that is behind",
    ),
    Mutant(
        name="a-task-whose-start-was-not-handled-gets-no-inspect",
        file=_AHEAD,
        old="if start_waits or (waits and sent is not None and sent <= now - HANDLED_WITHIN):",
        new="if waits and sent is not None and sent <= now - HANDLED_WITHIN:",
        tests=(
            f"{_OF_AHEAD}test_a_task_whose_start_was_not_handled_gets_none",
            f"{_OF_AHEAD}test_a_pass_sends_no_inspect_of_a_task_whose_start_waits_until_it_was_handled",
        ),
        why="each pass puts one more message into the queue that is behind",
    ),
    Mutant(
        name="an-unanswered-task-keeps-the-time-of-its-inspect",
        file=_AHEAD,
        old="if at > now - 2 * self._window or task in self._unanswered",
        new="if at > now - 2 * self._window",
        tests=(f"{_OF_AHEAD}test_a_task_stays_unanswered_for_as_long_as_the_same_attempt_is_late",),
        why="each visit after some minutes sends an Inspect that nobody handles",
    ),
    Mutant(
        name="an-attempt-that-became-late-later-gets-an-inspect",
        file=_AHEAD,
        old=" and late_since <= sent\n",
        new="\n",
        tests=(f"{_OF_AHEAD}test_an_attempt_that_became_late_after_its_inspect_gets_another_one",),
        why="an agent that never answers is found a minute late at each attempt",
    ),
    Mutant(
        name="an-answered-task-gets-inspects-again",
        file=_AHEAD,
        old="            self._unanswered.pop(task_id, None)\n",
        new="            return\n",
        tests=(f"{_OF_AHEAD}test_a_task_stays_unanswered_for_as_long_as_the_same_attempt_is_late",),
        why="after an outage, timeouts are found up to a minute late for half an hour",
    ),
    Mutant(
        name="an-inspect-that-may-be-under-way-is-not-late",
        file=_AHEAD,
        old="sent <= now - HANDLED_WITHIN",
        new="sent <= now",
        tests=(
            f"{_OF_AHEAD}test_a_task_whose_inspect_should_have_been_handled_gets_no_further_one",
        ),
        why="a pass that comes right after an Inspect stops looking ahead",
    ),
    Mutant(
        name="an-unanswered-task-is-forgotten",
        file=_AHEAD,
        old="for task, at in self._unanswered.items() if at > kept}",
        new="for task, at in self._unanswered.items()}",
        tests=(f"{_OF_AHEAD}test_a_task_that_nobody_has_visited_for_long_is_forgotten",),
        why="the memory of an instance grows without an end",
    ),
    Mutant(
        name="nothing-is-sent-ahead-of-an-unanswered-task",
        file=_AHEAD,
        old=" and self.may_send(entry.task_id)",
        new="",
        tests=(
            f"{_OF_AHEAD}test_a_task_whose_inspect_should_have_been_handled_gets_no_further_one",
            f"{_OF_AHEAD}test_a_task_whose_start_was_not_handled_gets_none",
        ),
        why="each pass puts one more message into the queue that is behind",
    ),
    Mutant(
        name="nothing-is-sent-ahead-to-a-scheduler-that-is-behind",
        file=_SUPERVISOR,
        old="if soon and self._queues.scheduler_lag() <= HANDLED_WITHIN:",
        new="if soon:",
        tests=(f"{_OF_AHEAD}test_no_inspect_is_sent_ahead_while_the_scheduler_is_behind",),
        why="an overload gets one more message for each of its orders",
    ),
    # --- Marks ---
    Mutant(
        name="an-inspect-is-no-mark",
        file=_ARRIVED,
        old="return None if delayed else self.sent_at",
        new="return self.sent_at",
        tests=(
            f"{_OF_MARKS}test_an_inspect_is_never_a_mark_since_it_is_delayed_on_purpose",
            f"{_OF_MARKS}test_an_inspect_that_is_sent_early_gives_its_task_no_time",
        ),
        why="a delay of 15 minutes is taken for a backlog, and no timeout counts",
    ),
    Mutant(
        name="a-mark-is-of-an-agent-of-the-plan",
        file=_SCHEDULER,
        old="if plan is None or agent not in plan.agents:",
        new="if plan is None:",
        tests=(f"{_OF_MARKS}test_a_reply_of_an_agent_that_the_plan_does_not_name_is_no_mark",),
        why="a message with any name grows the one row of marks without an end",
    ),
    Mutant(
        name="a-healthy-order-stores-no-mark",
        file=_SCHEDULER,
        old="if is_mark_due(sent_at, self._clock(), wish):",
        new="if True:",
        tests=(f"{_OF_MARKS}test_a_healthy_order_stores_no_mark",),
        why="each message costs a write of one row",
    ),
    Mutant(
        name="a-mark-that-cannot-be-stored-fails-no-message",
        file=_SCHEDULER,
        old="        except (TryAgain, CallRefused):\n            return\n",
        new="        except ZeroDivisionError:\n            return\n",
        tests=(f"{_OF_MARKS}test_a_mark_that_cannot_be_stored_fails_no_message",),
        why="a stack whose roles are older than its code handles no reply that waited",
    ),
    Mutant(
        name="a-wanted-mark-is-stored-of-a-prompt-reply",
        file=_QUEUES,
        old="return now - sent_at > PROMPT or (wanted is not None and",
        new="return now - sent_at > PROMPT and (wanted is None or",
        tests=(
            f"{_OF_QUEUES}test_a_mark_is_stored_while_one_is_wanted",
            f"{_OF_MARKS}test_while_a_mark_is_wanted_every_reply_of_that_agent_is_one",
        ),
        why="the timeouts of a half-dead agent with many replies never count",
    ),
    Mutant(
        name="a-mark-that-is-old-shows-no-backlog",
        file=_QUEUES,
        old="if mark is None or now - mark.read_at > MARK_VALID_FOR:",
        new="if mark is None:",
        tests=(
            f"{_OF_QUEUES}test_a_queue_lags_by_the_wait_of_the_message_of_its_mark",
            f"{_OF_WATCH}test_the_lag_of_the_scheduler_is_the_longest_that_a_mark_shows",
        ),
        why="after one backlog, the scheduler counts as behind for ever",
    ),
    Mutant(
        name="a-message-in-flight-is-a-message",
        file=_QUEUES,
        old="return not self.visible and not self.in_flight",
        new="return not self.visible",
        tests=(
            f"{_OF_QUEUES}test_a_queue_is_empty_if_it_has_no_message_read_or_not",
            f"{_OF_WATCH}test_a_queue_with_messages_is_not_empty_and_later_empty_anew",
        ),
        why="a success that is hidden after a failure is counted as a timeout",
    ),
    Mutant(
        name="the-agents-do-not-get-the-schedulers-marks",
        file=_CONTROL,
        old="            if not is_of_scheduler(queue)\n",
        new="",
        tests=(
            f"{_OF_BOARD}test_the_marks_of_what_the_scheduler_reads_are_apart_from_those_of_the_agents",
        ),
        why="the console shows queues that no agent has",
    ),
    Mutant(
        name="messages-in-flight-are-counted",
        file=_DEPTHS,
        old="in_flight=int(found[IN_FLIGHT])",
        new="in_flight=0",
        tests=(f"{_OF_DEPTHS}test_a_message_that_was_received_is_in_flight",),
        why="a success that is hidden after a failure is counted as a timeout",
    ),
    Mutant(
        name="half-of-an-answer-shows-no-empty-queue",
        file=_DEPTHS,
        old="if VISIBLE not in found or IN_FLIGHT not in found:",
        new="found = {VISIBLE: '0', IN_FLIGHT: '0', **found}\n        if not found:",
        tests=(f"{_OF_DEPTHS}test_an_answer_that_was_cut_off_shows_no_empty_queue",),
        why="a timeout is counted although its reply waits in the queue",
    ),
)
