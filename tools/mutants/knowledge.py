"""The guards of what is known of an effect, of claims that are sent again, and of repairs."""

from tools.mutants.mutant import Mutant

LONG_STEPS = "tests/unit/engine/test_attempts_long_steps.py"
ROUTING = "tests/unit/engine/test_routing.py"
REPAIRS = "tests/world/test_repairs.py"
REDELIVERY = "tests/unit/scheduler/test_redelivery.py"
RESUBMIT = "tests/unit/engine/test_operator_resubmit.py"

KNOWLEDGE = (
    Mutant(
        name="lock-given-once",
        file="layers/core/roundsman/model/events.py",
        old='return f"{self.instance}-{self.nonce}.{attempt}.{version}"',
        new='return f"{self.instance}-{self.nonce}.{attempt}"',
        tests=(
            f"{REDELIVERY}::test_a_request_that_was_not_sent_in_its_time_is_another_claim_with_another_lock",
        ),
        why="a late answer to one request counts for a later one of the same attempt",
    ),
    Mutant(
        name="a-refusal-is-no-proof",
        file="layers/core/roundsman/engine/decision.py",
        old="outcome_unknown=record.outcome_unknown or (unproven and effect is None),",
        new="outcome_unknown=record.outcome_unknown or exhausted,",
        tests=(
            f"{RESUBMIT}::test_a_step_whose_outcome_is_unknown_is_undone_under_its_key_before_it_has_a_fresh_one",
        ),
        why="a refusal of one copy is taken for a proof that no other was taken",
    ),
    Mutant(
        name="an-agent-is-left-with-proof",
        file="layers/core/roundsman/engine/routing.py",
        old="return record.effect is Effect.NONE",
        new="return not record.outcome_unknown",
        tests=(
            f"{ROUTING}::test_what_was_given_back_without_proof_stays_since_a_copy_may_have_been_taken",
        ),
        why="a step goes to another agent, and a copy of its request has been taken at the first",
    ),
    Mutant(
        name="a-proof-ends-with-a-claim",
        file="layers/core/roundsman/engine/attempts.py",
        old="        effect=None,\n        extra=0,\n        granted=granted,",
        new="        extra=0,\n        granted=granted,",
        tests=(f"{ROUTING}::test_a_proof_is_about_the_requests_made_before_it",),
        why="what was proven of an earlier request is believed of a later one",
    ),
    Mutant(
        name="a-persons-word-is-about-the-past",
        file="layers/core/roundsman/engine/operator.py",
        old="effect=Effect.NONE if acts_until is None else None,",
        new="effect=Effect.NONE,",
        tests=(f"{ROUTING}::test_a_persons_word_does_not_while_a_copy_of_the_request_may_act",),
        why="a step goes to another agent while a copy of its request may still act at the first",
    ),
    Mutant(
        name="late-success-is-kept",
        file="layers/core/roundsman/engine/machine.py",
        old="elif event.outcome is Outcome.SUCCEEDED and timely and _has_failed(",
        new="elif event.outcome is Outcome.HELD and timely and _has_failed(",
        tests=(
            "tests/unit/engine/test_machine_replies.py::test_a_late_success_of_a_step_that_failed_for_good_is_known_from_then_on",
        ),
        why="an agent says that it happened after all, and nobody keeps it",
    ),
    Mutant(
        name="undone-before-a-fresh-key",
        file="layers/core/roundsman/engine/operator.py",
        old="    elif step.compensation is not None:\n        why = ",
        new="    elif step.compensation is None:\n        why = ",
        tests=(
            f"{REPAIRS}::test_a_charge_that_was_taken_and_then_refused_is_not_made_under_a_second_key",
        ),
        why="a step begins under a new key while its effect stands under the old one",
    ),
    Mutant(
        name="a-copy-may-act-under-the-old-key",
        file="layers/core/roundsman/engine/operator.py",
        old="if event.fresh_key and acts_until is not None:",
        new="if event.fresh_key and acts_until is not None and context.decision.ending is None:",
        tests=(
            f"{RESUBMIT}::test_a_person_may_give_a_fresh_key_to_what_did_not_happen_once_no_copy_can_act",
        ),
        why="a copy of the request acts under the old key when the new one has acted",
    ),
    Mutant(
        name="a-claim-under-another-key-is-sent-again",
        file="layers/core/roundsman/engine/machine.py",
        old="        send_own_claims_again(context, event.claimant)  # it may",
        new="        # it may",
        tests=(
            f"{ROUTING}::test_a_reply_that_moved_its_step_to_another_agent_sends_that_request_again",
        ),
        why="a step that has moved to another agent is claimed there, and its request never sent",
    ),
    Mutant(
        name="an-inspections-claim-is-sent-again",
        file="layers/core/roundsman/scheduler/scheduler.py",
        old="if StartTask() not in first.actions and not comes_again:",
        new="if StartTask() not in first.actions:",
        tests=(
            f"{REDELIVERY}::test_what_claims_a_step_and_could_not_send_sends_it_when_it_comes_again",
        ),
        why="every retry whose request could not be sent costs an attempt that was never made",
    ),
    Mutant(
        name="what-an-inspection-makes-ready-is-watched",
        file="layers/core/roundsman/engine/machine.py",
        old="    set_start_deadlines(context)\n    _ask_for_start(context)\n\n\ndef _nudge",
        new="    _ask_for_start(context)\n\n\ndef _nudge",
        tests=(
            f"{REPAIRS}::test_a_step_that_an_inspection_makes_ready_is_watched_though_its_start_is_lost",
        ),
        why="a lost Start is found when the task's whole time is over",
    ),
    Mutant(
        name="a-callback-that-has-come-is-not-waited-for",
        file="layers/core/roundsman/engine/machine.py",
        old="        decision.stop_waiting(step.name)\n",
        new="        pass\n",
        tests=(
            f"{LONG_STEPS}::test_the_undo_of_a_step_whose_callback_has_come_waits_for_its_request_alone",
        ),
        why="an undo waits a month for a callback that came after five minutes",
    ),
    Mutant(
        name="a-no-counts-as-a-yes",
        file="layers/core/roundsman/engine/machine.py",
        old="return event.outcome is Outcome.SUCCEEDED or says_no",
        new="return event.outcome is Outcome.SUCCEEDED",
        tests=(
            f"{LONG_STEPS}::test_an_answer_by_the_token_of_an_earlier_attempt_counts_be_it_yes_or_no",
        ),
        why="who was asked says No, and the order waits for an answer to the reminder",
    ),
    Mutant(
        name="a-no-is-an-outside-systems",
        file="layers/core/roundsman/engine/machine.py",
        old="says_no = event.callback and event.outcome is Outcome.PERMANENT",
        new="says_no = event.outcome is Outcome.PERMANENT",
        tests=(f"{LONG_STEPS}::test_an_agents_own_failure_of_an_earlier_attempt_does_not_count",),
        why="the late refusal of one attempt ends the next",
    ),
    Mutant(
        name="given-back-while-it-waits",
        file="layers/core/roundsman/engine/machine.py",
        old="case Outcome.HELD if context.decision.step(step.name).waiting:",
        new=(
            "case Outcome.HELD if context.decision.step(step.name).waiting"
            " and context.decision.ending:"
        ),
        tests=(f"{LONG_STEPS}::test_a_copy_that_is_given_back_ends_no_wait_for_a_callback",),
        why="a copy of a request that was given back asks the outside system once more",
    ),
    Mutant(
        name="more-time-is-another-request",
        file="layers/core/roundsman/engine/attempts.py",
        old="if record.extra:",
        new="if record.extra and record.waiting:",
        tests=(
            f"{REPAIRS}::test_more_time_for_a_step_helps_a_call_that_takes_longer_than_it_was_given",
        ),
        why="a person gives a slow step more time, and it fails at its old time",
    ),
    Mutant(
        name="an-earlier-round-is-named",
        file="layers/core/roundsman/engine/effects.py",
        old="if may_have_taken_effect(record) or record.round > 1",
        new="if may_have_taken_effect(record)",
        tests=(f"{REPAIRS}::test_an_undone_order_names_what_an_earlier_round_has_left_standing",),
        why="Undone says nothing of the mail that the first round has sent",
    ),
    Mutant(
        name="too-large-and-done",
        file="layers/core/roundsman/engine/steps.py",
        old="give_up(context, step, StepEvent.REFUSED, error, why, effect=Effect.STANDS)",
        new="give_up(context, step, StepEvent.REFUSED, error, why)",
        tests=(f"{RESUBMIT}::test_no_fresh_key_for_what_may_stand_and_nothing_can_undo",),
        why="a person is told that a step may have happened which has happened for certain",
    ),
    Mutant(
        name="perhaps-never-sent",
        file="layers/core/roundsman/engine/attempts.py",
        old="return context.now - record.started_at < REDELIVERED_WITHIN",
        new="return False",
        tests=(
            f"{REPAIRS}::test_a_process_that_dies_before_it_sends_costs_a_short_step_no_attempt",
            "tests/unit/engine/test_attempts_backlog.py::test_an_attempt_that_may_never_have_been_sent_is_not_counted_the_first_time",
        ),
        why="a process dies, and a healthy step of half a minute has lost its only attempt",
    ),
    Mutant(
        name="more-time-is-not-another-request",
        file="layers/core/roundsman/engine/attempts.py",
        old="(MAX_UNCOUNTED_TIMEOUTS if _was_extended(step, record) else 1)",
        new="1",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_an_attempt_that_was_given_more_time_may_still_never_have_been_sent",
        ),
        why="an attempt that was waited for counts, though it was never sent",
    ),
    Mutant(
        name="what-was-read-is-counted",
        file="layers/core/roundsman/engine/attempts.py",
        old="shown = view.read_lock is None or view.read_lock == record.locked_by",
        new="shown = view.read_lock is None",
        tests=(
            "tests/unit/engine/test_attempts_backlog.py::test_an_attempt_that_was_sent_for_all_that_is_known_is_counted",
        ),
        why="an agent dies of an order, and its first attempt does not count",
    ),
    Mutant(
        name="an-end-is-not-ended-anew",
        file="layers/core/roundsman/engine/machine.py",
        old="if task.ended and isinstance(event, Replied):",
        new="if task.ended and isinstance(event, Replied) and plan is None:",
        tests=(
            "tests/unit/engine/test_machine_missing_plan.py::test_a_late_reply_to_a_task_archived_while_its_undo_was_to_be_made_changes_nothing",
        ),
        why="a late reply breaks its handler, since an archived task cannot go on by itself",
    ),
)
