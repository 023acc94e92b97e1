"""The interleavings that break systems like this one, and the tests of each."""

from dataclasses import dataclass

EFFECTS = "tests/world/test_effects.py"
FORGOTTEN = "tests/world/test_forgotten_keys.py"
MESSAGES = "tests/world/test_messages.py"
SUPERVISION = "tests/world/test_supervision.py"
OVERLOAD = "tests/world/test_overload.py"
DEADLINES = "tests/world/test_deadlines.py"
RECORDS = "tests/world/test_records.py"
REPAIRS = "tests/world/test_repairs.py"
BULK = "tests/world/test_bulk_runs.py"
OUTAGES = "tests/world/test_outages.py"
RESTORED = "tests/world/test_restored.py"
ORDERS_HELD = "tests/world/test_holds_on_orders.py"
REDELIVERY = "tests/unit/scheduler/test_redelivery.py"


@dataclass(frozen=True, slots=True)
class Story:
    """What happens, in a sentence that ends in what must not; `tests` are node ids."""

    sentence: str
    tests: tuple[str, ...]


STORIES = (
    Story(
        "A charge is given up by its agent and undone, because another branch failed or an "
        "operator asked, and lands after that: undone, with the money taken.",
        (
            f"{EFFECTS}::test_a_charge_that_lands_late_is_refunded_though_a_parallel_step_failed_at_once",
            f"{EFFECTS}::test_a_charge_that_lands_late_is_refunded_though_an_operator_asked_for_undo_before",
            f"{EFFECTS}::test_where_the_service_fences_the_refund_is_sent_at_once_and_the_late_charge_is_refused",
        ),
    ),
    Story(
        "A charge succeeds and its answer is lost; its step waits to be repeated, or has no "
        "attempt left, when the task is undone: the undo passes it over.",
        (f"{EFFECTS}::test_a_charge_whose_answer_was_lost_is_refunded_be_it_requeued_or_given_up",),
    ),
    Story(
        "One copy of a request is refused, the task is undone, and the other copy succeeds: "
        "a refusal was taken for a proof.",
        (
            f"{EFFECTS}::test_a_refusal_is_no_proof_since_a_second_copy_of_the_request_may_find_funds",
        ),
    ),
    Story(
        "A request is delivered again when its step is done, and undone since, and the service "
        "has forgotten the key: it is done anew.",
        (
            f"{EFFECTS}::test_a_perform_that_is_delivered_again_after_its_step_is_done_takes_no_money_that_stays",
        ),
    ),
    Story(
        "A request is given back uncalled, as its agent is held; SQS delivers it once more, it is "
        "done then, and its answer lost: the step goes to another agent, and is done twice.",
        (
            f"{EFFECTS}::test_a_request_that_was_given_back_and_comes_once_more_charges_nobody_a_second_time",
            f"{EFFECTS}::test_a_charge_that_a_copy_has_made_stays_at_its_agent_though_that_gives_it_back",
            f"{EFFECTS}::test_a_charge_whose_service_says_that_it_did_nothing_is_made_at_the_next_agent",
            "tests/world/test_many_agents.py::test_a_charge_that_goes_from_agent_to_agent_whatever_happens_is_made_at_one_of_them",
            "tests/contract/test_call_notes.py::test_a_call_and_a_closing_at_once_never_both_succeed",
        ),
    ),
    Story(
        "A service answers that it is overloaded and does nothing, at each try; the step waits for "
        "it, though another agent is well, or goes to that one without a proof, and is done twice.",
        (
            f"{EFFECTS}::test_a_charge_whose_service_says_that_it_did_nothing_is_made_at_the_next_agent",
            f"{EFFECTS}::test_a_job_that_was_begun_is_begun_nowhere_else_once_its_note_has_expired",
            "tests/unit/engine/test_routing.py::test_a_failure_without_proof_stays_and_the_reason_says_why",
        ),
    ),
    Story(
        "A completed order is taken back when the service has forgotten its key: the undo finds "
        "nothing, and the order counts as undone, with the money taken.",
        (
            "tests/unit/engine/test_take_back.py::test_an_undo_that_the_key_does_not_outlive_is_not_sent_and_a_person_decides",
            "tests/unit/engine/test_take_back.py::test_the_request_of_an_undo_does_not_act_after_the_lifetime_of_its_key",
        ),
    ),
    Story(
        "A charge takes effect, its answer is lost, and its agent is held for longer than the "
        "service remembers the key: sent again under that key, and charged twice; or believed not "
        "to have happened, because a probe asks by a key that is forgotten.",
        (
            f"{FORGOTTEN}::test_a_probe_that_outlives_the_key_finds_what_a_held_order_has_done",
            f"{FORGOTTEN}::test_what_such_a_probe_does_not_find_is_done_once_under_a_new_key",
            f"{FORGOTTEN}::test_any_other_probe_may_not_decide_and_one_bulk_resolve_begins_what_did_not_happen",
            f"{FORGOTTEN}::test_what_happened_is_resolved_with_its_result_and_never_happens_again",
            f"{FORGOTTEN}::test_a_call_that_lasts_longer_than_it_may_reaches_its_service_before_the_key_is_gone",
        ),
    ),
    Story(
        "A cancelled order is taken back days later: its contents are removed by the time of its "
        "first end, before a person has looked at the second.",
        (f"{RECORDS}::test_an_order_that_ends_in_another_way_at_once_is_kept_from_that_end_on",),
    ),
    Story(
        "The function dies between writing that a task is completed and saying so; redelivered, "
        "in the dead letters or with nothing retained, the reply is taken for a late one: the "
        "application never gets the status.",
        (
            f"{MESSAGES}::test_completed_is_sent_though_the_function_dies_between_its_write_and_the_status",
        ),
    ),
    Story(
        "The customer deletes the reply queue, or it fails: a status that cannot be sent keeps "
        "the next request from being sent, and a healthy order is undone.",
        (
            f"{MESSAGES}::test_a_reply_queue_that_its_customer_has_deleted_stops_no_healthy_order",
            f"{MESSAGES}::test_statuses_that_fail_for_now_delay_no_step_and_are_sent_in_the_end",
        ),
    ),
    Story(
        "The due entry stands at a late deadline (of a long step, a long wait, a start next "
        "month), then a step with an early one starts and its request is lost: nobody looks.",
        (
            f"{SUPERVISION}::test_a_step_with_an_early_deadline_is_found_though_the_entry_was_moved_to_a_late_one",
            f"{SUPERVISION}::test_a_run_now_during_a_long_wait_is_watched_though_its_request_is_lost",
            f"{SUPERVISION}::test_a_resubmitted_step_is_watched_though_its_request_is_lost",
            f"{SUPERVISION}::test_a_task_of_next_month_that_is_run_now_is_watched_from_now_on",
        ),
    ),
    Story(
        "A supervisor has read a task and is about to move its entry to a late deadline when a "
        "scheduler commits an early one: the early one is overwritten.",
        (
            f"{SUPERVISION}::test_a_supervisor_that_is_overtaken_does_not_move_the_entry_beyond_the_new_deadline",
            "tests/contract/test_task_store.py::test_rearming_after_a_newer_decision_leaves_its_earlier_deadline",
            "tests/contract/test_races.py::test_a_rearming_and_a_decision_at_once_leave_the_decisions_deadline",
        ),
    ),
    Story(
        "A step fails for good and the task is to be archived while another step is at work: the "
        "task leaves the open lane, and that step is watched by nobody.",
        (f"{SUPERVISION}::test_a_step_beside_one_that_failed_for_good_is_watched_to_its_own_end",),
    ),
    Story(
        "A supervisor stores that a step is to be repeated and dies before it sends: an attempt "
        "is counted that was never made.",
        (f"{SUPERVISION}::test_a_requeue_whose_supervisor_dies_before_it_sends_burns_no_attempt",),
    ),
    Story(
        "A backlog is longer than a step may take: every request expires unread, every success "
        "is late, and healthy orders are undone.",
        (
            f"{OVERLOAD}::test_every_order_of_a_backlog_longer_than_its_time_completes_and_none_is_undone",
            "tests/unit/engine/test_attempts_backlog.py::test_every_order_of_a_backlog_longer_than_its_time_completes_with_no_failure_counted",
            f"{OVERLOAD}::test_an_order_of_a_backlog_whose_calls_take_long_has_one_request_and_waits_in_its_queue",
            "tests/overload/test_agent_queue.py::test_no_healthy_order_fails_of_a_long_queue_and_no_attempt_of_one_is_counted",
        ),
    ),
    Story(
        "A circuit is open for ten minutes: every attempt is burned against it.",
        (
            f"{OVERLOAD}::test_ten_minutes_of_an_open_circuit_burn_no_attempt",
            f"{OVERLOAD}::test_what_was_sent_before_its_circuit_opened_is_given_back_and_burns_none_either",
        ),
    ),
    Story(
        "A task is begun again after its undo, under the same keys: the service answers with the "
        "old success of a charge that was refunded.",
        (
            f"{EFFECTS}::test_an_order_that_is_begun_again_after_its_undo_is_charged_under_a_key_of_its_own",
        ),
    ),
    Story(
        "A resubmission is delivered once more after the task has failed a second time: it acts "
        "again, unasked.",
        (
            f"{EFFECTS}::test_a_resubmission_that_is_delivered_again_after_a_second_failure_does_nothing",
        ),
    ),
    Story(
        "A task that is over is removed, and its order event comes once more: the order is made, "
        "and charged, anew.",
        (
            f"{MESSAGES}::test_an_order_event_that_comes_again_when_its_task_is_gone_creates_nothing",
            "tests/contract/test_task_store.py::test_a_task_past_its_retention_is_not_made_anew_while_its_order_is_there",
        ),
    ),
    Story(
        "Two copies of an order event are handled at once, and a conflict of transactions is "
        "taken for an order that exists: it is acknowledged, and never made.",
        (
            f"{MESSAGES}::test_two_copies_of_an_order_at_once_are_one_task_and_both_are_taken",
            f"{MESSAGES}::test_an_order_whose_write_was_in_conflict_is_not_taken_for_one_that_exists",
            f"{MESSAGES}::test_an_order_that_comes_twice_is_the_same_though_its_input_function_numbers_it",
            "tests/unit/aws/test_errors.py::test_a_cancelled_transaction_means_what_cancelled_it",
            "tests/contract/test_lost_answers.py::test_what_may_pass_is_tried_again_and_never_taken_for_an_order_that_exists",
        ),
    ),
    Story(
        "A record makes the machine fail and stands at the head of its shard: each pass begins, "
        "and ends, there.",
        (
            f"{SUPERVISION}::test_a_task_that_breaks_the_machine_holds_up_no_other_of_its_shard",
            "tests/unit/supervisor/test_supervisor.py::test_a_broken_record_at_the_head_of_its_shard_does_not_stop_the_rest",
        ),
    ),
    Story(
        "One message kills the function: the nine others of its batch go to the dead letters with "
        "it.",
        (
            "tests/unit/aws/sqs/test_batch.py::test_a_message_that_kills_the_process_takes_no_innocent_along",
            "tests/unit/aws/sqs/test_batch.py::test_the_poison_ends_in_its_dead_letter_queue_alone",
            "tests/moto/test_bad_messages.py::test_a_message_that_kills_the_function_takes_none_of_its_batch_with_it",
        ),
    ),
    Story(
        "Ten replies of a wide task are stored by one write, and the scheduler dies around it or "
        "while it sends: steps are claimed whose requests nobody sends, or are claimed twice.",
        (
            f"{MESSAGES}::test_the_replies_of_a_wide_task_that_are_there_together_are_one_write",
            f"{MESSAGES}::test_ten_replies_whose_scheduler_dies_around_their_write_cost_no_attempt",
            f"{MESSAGES}::test_ten_replies_whose_scheduler_dies_while_it_sends_claim_nothing_twice",
        ),
    ),
    Story(
        "Twenty steps come after one whose reply is repeated: twenty requests become a hundred.",
        (
            f"{MESSAGES}::test_a_reply_that_comes_twice_does_not_multiply_the_requests_of_the_steps_behind_it",
            f"{MESSAGES}::test_a_redelivered_reply_sends_again_only_what_it_has_claimed_itself",
        ),
    ),
    Story(
        "Results grow until no item holds them: the reply that crosses the line fails for ever.",
        (
            f"{RECORDS}::test_an_answer_that_is_larger_than_its_plan_allows_is_left_out_and_the_step_is_done",
            f"{RECORDS}::test_of_answers_that_fill_the_record_together_those_too_many_are_left_out",
        ),
    ),
    Story(
        "An order id has a slash, a line's end or letters beyond ASCII: its calls go elsewhere, "
        "and its alert can never be published.",
        (
            f"{RECORDS}::test_an_order_whose_id_fits_in_no_header_or_subject_is_put_aside_with_the_reason",
            "tests/unit/alerts/test_group_alert.py::test_an_id_of_any_length_and_script_has_an_alert_that_sns_takes",
            "tests/unit/agents/test_http.py::test_each_part_of_the_path_is_one_segment_below_the_base",
            "tests/unit/agents/test_http.py::test_a_key_that_does_not_fit_in_a_header_is_refused",
        ),
    ),
    Story(
        "A record's time to live is written in milliseconds: nothing is ever removed.",
        (
            "tests/unit/aws/dynamodb/test_codec.py::test_a_record_expires_at_a_full_second_and_never_early",
        ),
    ),
    Story(
        "The client repeats a write that had succeeded: its condition fails against itself, and "
        "the winner stands back as if it had lost.",
        (
            f"{MESSAGES}::test_a_write_that_fails_its_own_condition_for_having_succeeded_is_known_by_its_claims",
            "tests/contract/test_lost_answers.py::test_a_decision_whose_answer_was_lost_is_found_in_the_record",
            "tests/contract/test_lost_answers.py::test_an_order_whose_answer_was_lost_is_there_with_the_same_content",
        ),
    ),
    Story(
        "A warm instance of older code reads a record of newer code: it writes back what it "
        "understood of it.",
        (
            "tests/unit/aws/dynamodb/test_codec.py::test_a_newer_format_is_not_read_whatever_else_is_in_it",
            "tests/contract/test_task_store.py::test_a_record_of_newer_code_is_not_read_and_stays_due",
            "tests/unit/scheduler/test_scheduler.py::test_a_record_of_newer_code_is_left_alone_and_its_message_comes_again",
            "tests/unit/supervisor/test_supervisor.py::test_a_record_of_newer_code_is_left_where_it_is_for_newer_code",
        ),
    ),
    Story(
        "Scheduler, agent, scheduler, agent is a loop to Lambda, which stops it after some sixteen "
        "rounds; no emulator shows that.",
        (
            "tests/template/test_functions.py::test_the_loop_of_scheduler_and_agents_is_not_stopped_as_a_runaway",
        ),
    ),
    Story(
        "A queue is longer than a request may wait: it is read too late, sent again to the "
        "queue's end, and read too late for ever.",
        (
            f"{OVERLOAD}::test_a_request_that_is_always_read_too_late_is_given_the_time_of_its_queue",
        ),
    ),
    Story(
        "A held step is woken by nothing, or the task's time runs out while its agent is held.",
        (
            f"{OVERLOAD}::test_a_held_step_is_woken_by_the_end_of_its_hold_without_a_message",
            f"{OVERLOAD}::test_a_task_whose_time_runs_out_while_its_agent_is_held_completes",
            f"{OVERLOAD}::test_an_undo_whose_agent_is_held_is_made_when_the_hold_ends",
        ),
    ),
    Story(
        "Everything is on hold while orders come, run and are undone: an order fails although "
        "nothing is wrong with it, goes on before its share is released, or stays half undone.",
        (
            f"{ORDERS_HELD}::test_a_healthy_order_never_fails_because_of_holds_that_come_and_go",
            f"{ORDERS_HELD}::test_what_runs_ends_as_always_and_nothing_begins_after_it",
            f"{ORDERS_HELD}::test_a_share_of_the_orders_goes_on_and_each_share_contains_the_one_before",
            f"{ORDERS_HELD}::test_new_orders_are_accepted_and_wait_and_go_on_with_all_their_time",
            f"{ORDERS_HELD}::test_a_hold_on_one_workflow_leaves_the_others_alone",
            f"{ORDERS_HELD}::test_undos_go_on",
            f"{ORDERS_HELD}::test_undos_wait_too_if_the_hold_says_so",
            f"{ORDERS_HELD}::test_a_deadline_runs_on_while_everything_is_on_hold",
        ),
    ),
    Story(
        "A deadline of the business passes while an agent is on hold, and the order goes on though "
        "its result has no value any more; or it fails again once a person has decided.",
        (
            f"{DEADLINES}::test_a_hold_that_lasts_past_the_deadline_moves_the_complete_by_and_not_the_deadline",
            f"{DEADLINES}::test_what_is_resubmitted_after_its_deadline_completes",
            f"{DEADLINES}::test_a_callback_is_not_waited_for_after_the_deadline",
            f"{DEADLINES}::test_an_order_that_would_start_after_the_deadline_of_its_workflow_is_rejected",
            f"{DEADLINES}::test_the_supervisor_finds_a_task_whose_deadline_has_passed_though_no_inspect_arrives",
        ),
    ),
    Story(
        "An undo finds its own key in its request and not that of what it undoes: it undoes "
        "nothing.",
        (
            f"{EFFECTS}::test_an_undo_is_given_the_key_of_the_perform_in_the_first_round_and_in_the_second",
        ),
    ),
    Story(
        "The supervisor may not read or write a table for hours: it takes every due record for a "
        "broken one, and comes back to them hours after the right is given back.",
        (
            f"{SUPERVISION}::test_a_right_that_was_lost_for_hours_delays_no_order_once_it_is_given_back",
            f"{SUPERVISION}::test_a_record_that_was_taken_for_broken_is_looked_at_within_a_quarter_of_an_hour",
            "tests/unit/supervisor/test_supervisor_refused.py::test_what_is_refused_for_one_task_is_asked_for_no_other_in_that_pass",
        ),
    ),
    Story(
        "Another hand writes one hold, mark, group or lease that cannot be read: nobody can decide "
        "anything any more.",
        (
            "tests/contract/test_holds.py::test_an_agent_whose_hold_cannot_be_read_is_held_and_no_other",
            "tests/contract/test_holds.py::test_a_hold_that_cannot_be_read_gives_way_to_the_next_of_its_kind",
            "tests/contract/test_marks.py::test_a_mark_that_is_none_is_passed_over_and_the_next_takes_its_place",
            "tests/contract/test_groups.py::test_an_attribute_that_is_no_group_silences_no_other_and_gives_way",
            "tests/contract/test_leases.py::test_what_of_the_leases_cannot_be_read_counts_as_none_and_gives_way_to_the_next_write",
        ),
    ),
    Story(
        "A task's time begins and ends between two passes of the supervisor: its end is noticed by "
        "the next pass, minutes late.",
        (
            f"{SUPERVISION}::test_a_task_with_little_time_ends_within_two_seconds_of_it",
            f"{SUPERVISION}::test_a_task_starts_within_two_seconds_of_its_time",
        ),
    ),
    Story(
        "An answer is lost, and the service answers no probe: nobody knows what happened, and the "
        "undo, which would be right either way, is never made.",
        (
            f"{EFFECTS}::test_a_service_that_answers_no_probe_and_fences_is_refunded_after_a_lost_answer",
            f"{EFFECTS}::test_a_service_that_answers_405_to_its_probe_strands_no_undo",
        ),
    ),
    Story(
        "A key of a service expires, and each call is refused for an hour: every order under way "
        "is undone, though nothing is wrong with it.",
        (f"{EFFECTS}::test_while_a_credential_is_refused_no_order_fails",),
    ),
    Story(
        "A charge is taken, and its step fails for good all the same: a later try was refused, or "
        "another copy, or its error is one that is not to be repeated. A person resubmits it under "
        "a new key, or while its agent is held: the customer pays twice.",
        (
            f"{REPAIRS}::test_a_charge_that_was_taken_and_then_refused_is_not_made_under_a_second_key",
            f"{REPAIRS}::test_a_charge_that_was_taken_and_then_refused_is_not_made_at_another_agent",
            f"{REPAIRS}::test_a_copy_of_a_refused_request_is_not_taken_where_the_step_may_go_to_another_agent",
            f"{REPAIRS}::test_what_a_copy_says_of_a_step_that_has_failed_is_kept_after_the_task_has_ended",
        ),
    ),
    Story(
        "An inspection, a command or a reply that moves a step to another agent claims it, and its "
        "request cannot be sent; redelivered, the message finds nothing to do: an attempt is "
        "counted that was never made.",
        (
            f"{REPAIRS}::test_an_inspection_that_could_not_send_its_claim_sends_it_when_it_comes_again",
            f"{REDELIVERY}::test_what_claims_a_step_and_could_not_send_sends_it_when_it_comes_again",
            f"{REPAIRS}::test_a_process_that_dies_before_it_sends_costs_a_short_step_no_attempt",
            "tests/unit/engine/test_routing.py::test_a_reply_that_moved_its_step_to_another_agent_sends_that_request_again",
        ),
    ),
    Story(
        "A message claims an attempt that is not counted, and claims it once more when it is "
        "redelivered: both requests have one lock, and a late answer to the first counts for the "
        "second.",
        (
            f"{REDELIVERY}::test_a_request_that_was_not_sent_in_its_time_is_another_claim_with_another_lock",
        ),
    ),
    Story(
        "The supervisor's own inspection makes a step ready, and the Start that follows is lost: "
        "nobody looks before the task's time is over.",
        (
            f"{REPAIRS}::test_a_step_that_an_inspection_makes_ready_is_watched_though_its_start_is_lost",
        ),
    ),
    Story(
        "A callback that may take 30 days comes after five minutes, and the order fails: its undo "
        "waits for the 30 days.",
        (f"{REPAIRS}::test_an_undo_does_not_wait_for_a_callback_that_has_come",),
    ),
    Story(
        "An outside system answers by the token of an attempt that was given up: its Yes counts, "
        "and its No does not.",
        (
            "tests/unit/engine/test_attempts_long_steps.py::test_an_answer_by_the_token_of_an_earlier_attempt_counts_be_it_yes_or_no",
        ),
    ),
    Story(
        "A person gives a slow step more time, and its agent falls silent when the request's own "
        "time is over: everybody waits for an answer that cannot come.",
        (f"{REPAIRS}::test_more_time_for_a_step_helps_a_call_that_takes_longer_than_it_was_given",),
    ),
    Story(
        "An order is undone, begun all over and undone again: what nothing could undo in the first "
        "round is forgotten.",
        (f"{REPAIRS}::test_an_undone_order_names_what_an_earlier_round_has_left_standing",),
    ),
    Story(
        "The supervisor dies before, in or after the send of a bulk run's commands, or two of them "
        "carry the run out: an order gets none, or two.",
        (
            f"{BULK}::test_a_supervisor_may_die_at_every_call_of_a_visit_and_each_order_is_repaired_once",
            f"{BULK}::test_it_may_die_again_while_another_takes_over",
            f"{BULK}::test_a_supervisor_may_die_after_every_call_of_a_run_of_one_order",
            f"{BULK}::test_of_two_supervisors_each_order_gets_one_command",
            f"{BULK}::test_a_supervisor_that_was_overtaken_sends_nothing",
            f"{BULK}::test_an_order_that_failed_again_while_no_supervisor_ran_counts_as_failed",
            f"{BULK}::test_a_run_that_another_release_wrote_halfway_is_carried_on",
        ),
    ),
    Story(
        "The command of a bulk run has its effect between the read of the task and the read of its "
        "history: the old failure counts as a new one, and stops the run.",
        (
            f"{BULK}::test_a_command_that_is_carried_out_between_two_reads_is_not_taken_for_a_failure",
        ),
    ),
    Story(
        "An order goes on by itself while a bulk run is about to repair it: it is repaired as it "
        "was, or left out without a reason.",
        (
            f"{BULK}::test_an_order_that_goes_on_by_itself_meanwhile_is_refused_with_its_sentence",
            f"{BULK}::test_a_task_that_moves_between_the_send_and_the_command_is_assessed_again",
            f"{BULK}::test_an_order_that_moved_on_and_may_still_be_repaired_gets_its_command_again",
        ),
    ),
    Story(
        "A command of a bulk run is lost, refused by AWS or throttled: its order is left out.",
        (
            f"{BULK}::test_a_command_that_sqs_loses_is_sent_again",
            f"{BULK}::test_what_was_stored_and_never_sent_and_failed_by_another_hand_is_not_lost",
            f"{BULK}::test_commands_that_aws_refuses_stop_the_run_and_a_person_resumes_it",
            f"{BULK}::test_a_queue_that_is_throttled_delays_the_run_and_nothing_else",
        ),
    ),
    Story(
        "A service is still down, breaks again midway, or its agent is on hold: a bulk run sends "
        "it all the orders.",
        (
            f"{BULK}::test_the_canary_goes_first_and_a_service_that_is_still_down_gets_no_more",
            f"{BULK}::test_a_service_that_breaks_midway_stops_the_run",
            f"{BULK}::test_an_agent_on_hold_stops_the_run_before_it_sends_to_it",
            f"{BULK}::test_a_stopped_run_is_resumed_with_a_canary_and_what_failed_again_is_not_tried_again",
            f"{BULK}::test_the_scheduler_gets_the_commands_of_one_visit_one_after_another",
        ),
    ),
    Story(
        "A person pauses or stops a bulk run, and nobody watches it: it goes on, or does not know "
        "where it was.",
        (
            f"{BULK}::test_a_run_that_is_paused_in_the_middle_goes_on_where_it_was",
            f"{BULK}::test_a_run_that_a_person_stops_sends_nothing_after_what_was_sent",
            f"{BULK}::test_a_run_is_carried_out_without_anybody_and_its_rows_name_run_and_person",
        ),
    ),
    Story(
        "Somebody who is no operator starts a bulk run, or claims that another did: it is carried "
        "out, and nobody learns of it.",
        (
            f"{BULK}::test_the_start_of_a_principal_that_is_no_operator_is_alerted",
            f"{BULK}::test_nobody_but_the_supervisor_is_believed_about_who_started_a_run",
        ),
    ),
    Story(
        "One order of a bulk run cannot be read, or its task is gone: the other orders and runs "
        "wait for it.",
        (
            f"{BULK}::test_an_order_that_cannot_be_read_is_refused_and_holds_up_no_other",
            f"{BULK}::test_a_run_over_orders_whose_tasks_are_kept_no_longer_than_their_end",
            f"{BULK}::test_two_runs_are_carried_side_by_side",
        ),
    ),
    Story(
        "The orders of a bulk run change every few seconds, or are removed with their end: most "
        "commands are refused, or their results are counted as others.",
        (
            f"{BULK}::test_orders_under_way_are_all_cancelled_although_each_changes_every_few_seconds",
            f"{BULK}::test_orders_that_are_kept_no_longer_than_their_end_are_counted_as_what_they_became",
            f"{BULK}::test_orders_that_others_have_repaired_and_that_are_gone_are_not_counted_as_completed",
        ),
    ),
    Story(
        "A bulk run takes back completed orders, and some have changed, cannot be taken back, or "
        "fail in their undo: what nobody meant is undone, or the run goes on with its failures.",
        (
            f"{BULK}::test_completed_orders_are_taken_back_in_the_version_in_which_a_person_saw_them",
            f"{BULK}::test_a_run_that_names_no_version_takes_no_completed_order_back",
            f"{BULK}::test_a_completed_order_that_cannot_be_taken_back_is_refused_with_its_sentence",
            f"{BULK}::test_undos_that_fail_stop_the_run_and_the_other_orders_stand",
            f"{BULK}::test_a_supervisor_may_die_after_every_call_and_each_order_is_taken_back_once",
        ),
    ),
    Story(
        "The tables are restored to an instant, and an order is undone that had fanned out, or met "
        "a condition, since then: what was done stands, and nobody learns of it.",
        (
            f"{RESTORED}::test_an_undo_after_a_restore_leaves_nothing_of_what_was_done_since",
            f"{RESTORED}::test_items_that_nobody_can_know_after_a_restore_are_named_by_their_step",
            f"{RESTORED}::test_an_order_that_goes_on_after_a_restore_does_nothing_twice",
        ),
    ),
    Story(
        "The tables are restored to an instant: what came since then, an order, a command, an "
        "answer, a status or a bulk run, is taken for done, or is done twice.",
        (
            f"{RESTORED}::test_an_order_of_after_the_backup_is_gone_and_its_event_makes_it_anew",
            f"{RESTORED}::test_a_command_that_a_person_gave_since_the_backup_may_be_given_again_after_a_restore",
            f"{RESTORED}::test_an_outside_system_may_answer_otherwise_after_a_restore",
            f"{RESTORED}::test_a_status_that_was_sent_before_the_backup_is_not_owed_again_after_a_restore",
            f"{RESTORED}::test_a_bulk_run_that_was_under_way_at_the_backup_is_paused_after_a_restore",
            f"{RESTORED}::test_the_rows_of_steps_that_were_settled_since_the_backup_are_gone_after_a_restore",
            f"{RESTORED}::test_an_order_that_is_not_reconciled_after_a_restore_fails_by_its_time",
        ),
    ),
    Story(
        "DynamoDB is down for a time, and orders are under way or come: they fail, or are lost.",
        (
            f"{OUTAGES}::test_what_comes_while_the_tables_are_down_waits_until_they_are_up",
            f"{OUTAGES}::test_an_order_that_waits_for_longer_than_its_deliveries_is_a_dead_letter",
        ),
    ),
)
