"""The guards of messages: what is sent when, acknowledged when, and answered by whom."""

from tools.mutants.mutant import Mutant

SENDING = (
    Mutant(
        name="a-bulk-run-stores-before-it-sends",
        file="layers/core/roundsman/supervisor/bulk_runs.py",
        old="        self._save()\n        self._post(tasks)",
        new="        self._post(tasks)",
        tests=(
            "tests/world/test_bulk_runs.py::test_an_order_that_failed_again_while_no_supervisor_ran_counts_as_failed",
        ),
        why="the next visit takes an order that failed again for one that was never sent anything",
    ),
    Mutant(
        name="a-bulk-run-stores-before-it-sends-again",
        file="layers/core/roundsman/supervisor/bulk_runs.py",
        old="            self._save()\n            self._post(again)",
        new="            self._post(again)",
        tests=(
            "tests/unit/supervisor/test_bulk_visits.py::test_a_command_is_not_sent_again_by_a_supervisor_that_was_overtaken",
        ),
        why="two supervisors send one command again, and no try is counted if one of them dies",
    ),
    Mutant(
        name="commit-then-send",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="        if fold.changes:\n            merged",
        new=(
            "        self._send(plan, fold, deliveries)\n"
            "        if fold.changes:\n            merged"
        ),
        tests=(
            "tests/unit/scheduler/test_scheduler.py::test_nothing_is_sent_before_it_is_stored",
            "tests/unit/scheduler/test_fold.py::test_where_the_write_fails_all_of_them_come_again",
        ),
        why="a request is out for a claim that was never made",
    ),
    Mutant(
        name="a-lost-race-decides-again",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="            if isinstance(saved, Superseded):\n                return []\n",
        new="",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_a_write_on_a_stale_record_loses_and_all_are_decided_anew",
            "tests/unit/scheduler/test_scheduler_races.py::test_two_messages_for_one_task_make_one_claim_and_one_request",
        ),
        why="a decision that was not stored is acted on",
    ),
    Mutant(
        name="nothing-to-do-by-the-latest-record",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="        elif not latest:\n            return []\n",
        new="",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_that_a_stale_read_shows_nothing_to_change_is_not_believed",
            "tests/unit/scheduler/test_scheduler_stale.py::test_a_reply_that_a_stale_record_does_not_wait_for_is_taken",
        ),
        why="a reply is dropped because an old record did not wait for it yet",
    ),
    Mutant(
        name="a-task-is-gone-by-the-latest-record",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="return [self._gone(task_id, event)] if latest else []",
        new="return [self._gone(task_id, event)]",
        tests=(
            "tests/unit/scheduler/test_scheduler_stale.py::test_a_task_that_was_just_made_is_found",
        ),
        why="the first message of a new task is dropped",
    ),
    Mutant(
        name="acknowledge-after-send",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="            self._finish_one(record, problem or unsent)",
        new="            self._finish_one(record, problem)",
        tests=(
            "tests/unit/aws/sqs/test_batch_sending.py::test_of_a_request_accepted_in_part_only_what_was_not_comes_again",
        ),
        why="a message is gone before what it caused was sent",
    ),
    Mutant(
        name="a-message-that-failed-comes-again",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="            self._handled.append((record, problem))",
        new="            self._handled.append((record, None))",
        tests=(
            "tests/unit/aws/sqs/test_batch.py::test_what_may_succeed_later_comes_again_and_alone",
        ),
        why="a message is gone that nobody has handled",
    ),
    Mutant(
        name="sent-before-it-is-deleted",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="        self._send_buffer.flush()\n        for record, problem in self._handled:",
        new="        for record, problem in self._handled:",
        tests=(
            "tests/unit/aws/sqs/test_batch_sending.py::test_in_a_batch_that_came_back_each_is_deleted_after_its_own_was_sent",
        ),
        why="a message is deleted whose request then dies with the process",
    ),
    Mutant(
        name="a-reply-that-waited-too-long-is-silent",
        file="layers/core/roundsman/aws/sqs/send_buffer.py",
        old="if kept.post.until is not None and self._clock() >= kept.post.until:",
        new="if kept.post.until is not None and self._clock() < 0:",
        tests=(
            "tests/unit/aws/handlers/test_agent_batches.py::test_a_reply_that_waited_beyond_its_complete_by_is_never_sent",
        ),
        why="an agent answers for an attempt that is not its any more",
    ),
    Mutant(
        name="only-the-last-failure-is-a-dead-letter",
        file="layers/core/roundsman/aws/sqs/dead_letters.py",
        old="if policy.url is None or receives < self._most_receives(policy, error):",
        new="if policy.url is None:",
        tests=(
            "tests/unit/aws/sqs/test_dead_letters.py::test_every_earlier_failure_only_comes_again",
        ),
        why="a message that would have succeeded is dead after its second failure",
    ),
    Mutant(
        name="what-says-nothing-about-a-message-gives-it-not-up",
        file="layers/core/roundsman/aws/sqs/dead_letters.py",
        old="if self.gives_up_after is None or isinstance(error, TryAgain | CallRefused):",
        new="if self.gives_up_after is None:",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_what_says_nothing_about_the_message_never_makes_it_one_before_sqs_would",
        ),
        why="ten minutes of a throttled table make every reply a dead letter",
    ),
    Mutant(
        name="a-call-refused-gives-no-message-up",
        file="layers/core/roundsman/aws/sqs/dead_letters.py",
        old="isinstance(error, TryAgain | CallRefused):",
        new="isinstance(error, TryAgain):",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_what_says_nothing_about_the_message_never_makes_it_one_before_sqs_would",
        ),
        why="a right that is missing for five minutes makes every reply a dead letter",
    ),
    Mutant(
        name="a-failure-of-its-own-gives-a-message-up-soon",
        file="layers/core/roundsman/aws/sqs/dead_letters.py",
        old="        return min(self.gives_up_after, policy.most_receives)\n",
        new="        return policy.most_receives\n",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_the_fifth_failure_of_its_own_makes_a_message_a_dead_letter",
        ),
        why="a record that cannot be read fails for three hours before there is an alert",
    ),
    Mutant(
        name="a-limit-above-that-of-sqs-does-not-count",
        file="layers/core/roundsman/aws/sqs/dead_letters.py",
        old="        return min(self.gives_up_after, policy.most_receives)\n",
        new="        return self.gives_up_after\n",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_a_limit_above_that_of_sqs_is_that_of_sqs",
        ),
        why="SQS moves the message first, without a reason",
    ),
    Mutant(
        name="only-what-was-throttled-is-hidden-for-longer",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="            if isinstance(problem, Throttled):\n",
        new="            if problem is not None:\n",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_any_other_failure_leaves_the_visibility_of_its_queue",
        ),
        why="a message that would succeed now waits for a minute more",
    ),
    Mutant(
        name="what-was-throttled-once-comes-again-soon",
        file="layers/core/roundsman/model/redelivery.py",
        old="    if receives < 2:\n",
        new="    if receives < 1:\n",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_a_message_that_is_throttled_once_comes_again_before_its_claims_are_overdue",
        ),
        why="a claim whose request was not sent is overdue before its message comes again",
    ),
    Mutant(
        name="no-message-is-hidden-for-twice-its-visibility",
        file="layers/core/roundsman/model/redelivery.py",
        old="round(drawn * (visibility - LONGEST_RUN))",
        new="round(drawn * visibility)",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_no_message_is_hidden_for_twice_its_visibility_after_it_was_received",
        ),
        why="a reply is hidden for longer than whoever counts a timeout knows",
    ),
    Mutant(
        name="what-cannot-be-hidden-for-longer-fails-no-batch",
        file="layers/core/roundsman/aws/sqs/throttled.py",
        old="        except (TryAgain, CallRefused) as problem:\n",
        new="        except KeyError as problem:\n",
        tests=(
            "tests/unit/aws/sqs/test_throttled.py::test_what_cannot_be_hidden_for_longer_comes_again_as_usual",
        ),
        why="a refused ChangeMessageVisibility redelivers nine messages that were handled",
    ),
    Mutant(
        name="a-429-is-a-throttle",
        file="layers/core/roundsman/aws/errors.py",
        old="if status == TOO_MANY_REQUESTS or _name_any(codes, THROTTLE_WORDS):",
        new="if _name_any(codes, THROTTLE_WORDS):",
        tests=("tests/unit/aws/test_errors.py::test_what_aws_throttled_is_known_as_such",),
        why="a throttle under a new name comes again at once with all others",
    ),
    Mutant(
        name="a-dead-letter-is-there-before-its-message-is-gone",
        file="layers/core/roundsman/aws/sqs/dead_letters.py",
        old='moves it without a reason", extra=extra)\n            return False',
        new='moves it without a reason", extra=extra)\n            return True',
        tests=(
            "tests/unit/aws/sqs/test_dead_letters.py::test_what_cannot_be_put_there_is_left_for_sqs_to_move",
        ),
        why="a message is deleted that is in no dead-letter queue",
    ),
    Mutant(
        name="poison-goes-alone",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="crashed = came_before > 1 and len(entries) > 1",
        new="crashed = came_before < 0",
        tests=(
            "tests/unit/aws/sqs/test_batch.py::test_a_message_that_kills_the_process_takes_no_innocent_along",
        ),
        why="one message takes nine innocents along",
    ),
    Mutant(
        name="the-same-id-is-another-order",
        file="layers/core/roundsman/submission/submission.py",
        old="if found.order.content_hash != order.content_hash:",
        new="if not order.content_hash:",
        tests=(
            "tests/unit/submission/test_submission.py::test_another_order_under_the_same_id_is_rejected_with_the_queue_for_the_answer",
        ),
        why="another order of that id is accepted and never done",
    ),
    Mutant(
        name="a-repeated-order-is-announced",
        file="layers/core/roundsman/submission/submission.py",
        old="delivered = self._announce_again(found.task)",
        new="delivered = OwedResult()",
        tests=(
            "tests/unit/submission/test_submission.py::test_a_crash_anywhere_after_storing_is_made_good_by_the_redelivery",
        ),
        why="an order whose first Start was lost waits",
    ),
    Mutant(
        name="only-reply-queues-get-statuses",
        file="layers/core/roundsman/aws/sqs/outbox.py",
        old=(
            "        if usable_reply_queue(queue_url, self._scheduler_queue, "
            "self._reply_prefix) is not None:\n"
            "            return False\n"
        ),
        new="",
        tests=(
            "tests/contract/test_outbox.py::test_nothing_is_sent_to_a_queue_that_is_no_reply_queue",
        ),
        why="an order event names any queue, and it is written to",
    ),
    Mutant(
        name="a-dead-reply-queue-harms-nobody",
        file="layers/core/roundsman/aws/sqs/outbox.py",
        old=(
            "                    QueueUrl=queue_url, "
            "MessageBody=wire_text(body), **self._traced()\n"
            "                )\n"
            "        except CallRefused:\n"
            "            return False"
        ),
        new=(
            "                    QueueUrl=queue_url, "
            "MessageBody=wire_text(body), **self._traced()\n"
            "                )\n"
            "        except ZeroDivisionError:\n"
            "            return False"
        ),
        tests=(
            "tests/contract/test_outbox.py::test_a_status_to_a_queue_that_is_gone_can_never_succeed[moto]",
        ),
        why="a deleted reply queue fails its order",
    ),
    Mutant(
        name="silence-before-the-call",
        file="layers/core/roundsman/agents/agent.py",
        old=(
            "        if late := _late(request, clock()):\n"
            '            return NoReply(f"the request was read {late} after complete-by; '
            'not attempted")\n'
        ),
        new="",
        tests=(
            "tests/unit/agents/test_agent.py::test_a_request_read_after_complete_by_is_not_attempted_and_not_answered",
        ),
        why="an agent acts when its right to act is over",
    ),
    Mutant(
        name="silence-after-the-call",
        file="layers/core/roundsman/agents/agent.py",
        old=(
            "        if late := _late(request, now := clock()):\n"
            '            return NoReply(f"the attempt ended {late} after complete-by")\n'
            "        return self._reply(request, ended, now)"
        ),
        new="        return self._reply(request, ended, clock())",
        tests=(
            "tests/unit/agents/test_agent.py::test_what_ends_after_complete_by_is_not_answered_whatever_it_was",
        ),
        why="an agent answers for an attempt that is not its any more",
    ),
    Mutant(
        name="a-starved-request-is-given-back",
        file="layers/core/roundsman/agents/agent.py",
        old="    if left >= (within if is_patient else min(within, whole) // LEAST_SHARE):\n",
        new="    if left > 0:\n",
        tests=(
            "tests/unit/agents/test_agent.py::test_a_request_that_lay_in_its_queue_for_most_of_its_time_is_given_back_unattempted",
        ),
        why="a call is begun that cannot end in time",
    ),
    Mutant(
        name="an-attempt-has-its-own-time",
        file="layers/core/roundsman/agents/agent.py",
        old="else min(request.complete_by, now + within)",
        new="else request.complete_by",
        tests=(
            "tests/unit/agents/test_agent.py::test_an_attempt_has_its_steps_time_from_when_it_begins_and_no_more",
        ),
        why="a call that hangs takes all the time that was for the queue",
    ),
    Mutant(
        name="a-reply-does-not-wait-until-it-is-asked-for",
        file="layers/core/roundsman/agents/agent.py",
        old="return request.complete_by - patience if is_patient else request.complete_by\n",
        new="return request.complete_by if is_patient else request.complete_by\n",
        tests=(
            "tests/unit/aws/handlers/test_agent_batches.py::test_a_reply_does_not_wait_until_it_is_asked_for_though_its_request_ends_later",
        ),
        why="an attempt that was answered is counted as one that was not",
    ),
    Mutant(
        name="what-its-queue-cut-off-is-given-back",
        file="layers/core/roundsman/agents/agent.py",
        old="return request.complete_by - now < enough <= request.complete_by - request.sent_at\n",
        new="return not enough\n",
        tests=(
            "tests/unit/agents/test_agent.py::test_an_attempt_that_its_queue_left_too_little_time_is_not_failed_when_it_is_cut_off",
        ),
        why="an order fails of having waited",
    ),
    Mutant(
        name="a-redelivery-is-unknown",
        file="layers/core/roundsman/agents/agent.py",
        old="answered = answer(replace(request, read_before=True))",
        new="answered = answer(request)",
        tests=(
            "tests/unit/aws/handlers/test_agent.py::test_a_perform_that_was_read_before_is_made_as_one_whose_outcome_is_unknown",
        ),
        why="a call that may have been made is made again without asking",
    ),
    Mutant(
        name="probe-before-a-repeat",
        file="layers/core/roundsman/agents/attempt.py",
        old="asks = self.probe_only or (self.request.outcome_unknown and not self._probed)",
        new="asks = self._tries < 0",
        tests=(
            "tests/unit/agents/test_probes.py::test_a_perform_that_happened_before_is_not_repeated_and_its_result_is_the_probes",
        ),
        why="an outcome that nobody knows is repeated",
    ),
    Mutant(
        name="fenced-undo-spends-the-key",
        file="layers/core/roundsman/agents/attempt.py",
        old="return None if self._undoes_whatever_happened else succeeded(None)",
        new="return succeeded(None)",
        tests=(
            "tests/unit/agents/test_probes.py::test_where_nothing_happened_the_undo_of_a_fencing_service_still_spends_the_key",
        ),
        why="a late perform lands after an undo that found nothing",
    ),
    Mutant(
        name="an-open-circuit-counts-nothing",
        file="layers/core/roundsman/aws/guard/breaker.py",
        old="if circuit and circuit.state not in up:",
        new="if circuit and not up:",
        tests=(
            "tests/contract/test_breaker.py::test_failures_in_a_row_open_it_and_the_last_of_them_is_held[moto-error0]",
        ),
        why="the call that opens the circuit costs an attempt",
    ),
    Mutant(
        name="a-hold-is-checked-before-the-call",
        file="layers/core/roundsman/aws/guard/guard.py",
        old="        self._hold.check()\n",
        new="",
        tests=(
            "tests/contract/test_guarding.py::test_what_was_in_the_queue_when_somebody_held_the_agent_is_given_back[moto]",
        ),
        why="what was queued before a hold is called all the same",
    ),
    Mutant(
        name="a-later-call-of-an-attempt-waits-longer-for-its-turn",
        file="layers/core/roundsman/agents/attempt.py",
        old="follows, self._follows = self._follows, True",
        new="follows, self._follows = False, True",
        tests=(
            "tests/contract/test_guarding.py::test_the_probe_of_a_verified_undo_finds_its_turn_also_where_calls_queue[moto]",
        ),
        why="where calls queue, an undo is called again and again, and never verified",
    ),
    Mutant(
        name="callback-token-names-its-attempt",
        file="layers/core/roundsman/agents/callbacks.py",
        old="asked.task_id, asked.step, asked.operation, asked.lock, asked.idempotency_key, agent",
        new="asked.task_id, asked.step, asked.operation, asked.step, asked.idempotency_key, agent",
        tests=("tests/unit/agents/test_callbacks.py::test_a_token_is_of_its_attempt_and_its_item",),
        why="an answer to one attempt settles another",
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
        name="an-inspections-claim-is-sent-again",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="if StartTask() not in first.actions and not comes_again:",
        new="if StartTask() not in first.actions:",
        tests=(
            "tests/unit/scheduler/test_redelivery.py::test_what_claims_a_step_and_could_not_send_sends_it_when_it_comes_again",
        ),
        why="every retry whose request could not be sent costs an attempt that was never made",
    ),
    Mutant(
        name="a-fold-decides-on-the-decision-before",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="self._decide(plan, fold.task, event, claimant)",
        new="self._decide(plan, task, event, claimant)",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_the_replies_of_a_task_are_one_write_and_each_has_a_version_of_its_own",
        ),
        why="the last reply of a batch overwrites what the others decided",
    ),
    Mutant(
        name="a-claim-of-a-fold-stays-as-it-was-decided",
        file="layers/core/roundsman/scheduler/fold.py",
        old="(not kept or rows > ROWS_A_DECISION)",
        new="(rows > ROWS_A_DECISION)",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_a_reply_that_changes_what_another_has_claimed_has_a_write_of_its_own",
        ),
        why="the request of a step that is over by then is built, and fails the whole batch",
    ),
    Mutant(
        name="a-fold-ends-where-the-task-does",
        file="layers/core/roundsman/scheduler/fold.py",
        old="self._closed = moved or after.ended != before.ended or after.owed != before.owed",
        new="self._closed = moved",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_the_alert_of_a_reply_is_about_the_task_as_that_reply_left_it",
        ),
        why="an alert is owed of a failure that is over when the alert is sent, and is lost",
    ),
    Mutant(
        name="a-fold-ends-where-the-plan-changes",
        file="layers/core/roundsman/scheduler/fold.py",
        old="self._closed = moved or after.ended != before.ended or after.owed != before.owed",
        new="self._closed = after.ended != before.ended or after.owed != before.owed",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_what_follows_a_move_in_the_same_batch_is_decided_under_the_new_plan",
        ),
        why="a step of the old plan is claimed, or the step of the new one is left out",
    ),
    Mutant(
        name="the-history-of-a-fold-fits-one-transaction",
        file="layers/core/roundsman/scheduler/fold.py",
        old="(not kept or rows > ROWS_A_DECISION)",
        new="(not kept)",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_the_history_of_one_write_is_at_most_what_a_transaction_takes",
        ),
        why="the history of several failures is one row",
    ),
    Mutant(
        name="a-reply-that-fails-in-a-fold-fails-alone",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="                if not fold.decisions:\n                    raise\n",
        new="                raise\n",
        tests=(
            "tests/unit/scheduler/test_fold.py::test_a_reply_that_cannot_be_decided_fails_alone",
        ),
        why="a reply that breaks the engine takes nine others to the dead letters",
    ),
    Mutant(
        name="a-batch-that-came-before-goes-one-by-one",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="[[record] for record in records] if came_before > 1 else _groups(records, about)",
        new="_groups(records, about)",
        tests=(
            "tests/unit/aws/sqs/test_batch_together.py::test_a_batch_that_came_before_is_handled_one_by_one",
        ),
        why="a poison message kills its group again and again",
    ),
    Mutant(
        name="a-group-is-done-once-all-that-it-sent-was-accepted",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old="self._send_buffer.attribute_to(*(record.message_id for record in records))",
        new="self._send_buffer.attribute_to(records[0].message_id)",
        tests=(
            "tests/unit/aws/sqs/test_batch_together.py::test_what_a_group_sends_is_of_each_of_its_messages",
        ),
        why="a reply is gone before the request that it caused was accepted",
    ),
    Mutant(
        name="what-a-group-sends-waits-for-a-second-at-most",
        file="layers/core/roundsman/aws/sqs/batch.py",
        old=(
            "        self._send_buffer.flush_what_waited(LONGEST_WAIT)\n"
            "        self._send_buffer.attribute_to(*("
        ),
        new="        self._send_buffer.attribute_to(*(",
        tests=(
            "tests/unit/aws/sqs/test_batch_together.py::test_what_a_group_sends_waits_for_no_other_group_for_longer_than_a_second",
        ),
        why="a slow store delays the requests of all orders before it in the batch",
    ),
    Mutant(
        name="instances-of-one-snapshot-wait-differently",
        file="layers/core/roundsman/aws/__init__.py",
        old="\nseed_after_restore()",
        new="\n",
        tests=(
            "tests/architecture/test_snap_start.py::test_instances_of_one_snapshot_draw_and_are_named_differently[scheduler]",
        ),
        why="instances that Lambda restores together try again at the same instants",
    ),
)
