"""The guards of what an agent proves: that nothing happened, and that nothing will."""

from tools.mutants.mutant import Mutant

UNIT = "tests/unit/agents/test_call_notes.py"
CONTRACT = "tests/contract/test_call_notes.py"
CORE = "layers/core/roundsman/agents/call_notes.py"
DYNAMO = "layers/core/roundsman/aws/dynamodb/call_notes.py"

CALLS = (
    Mutant(
        name="a-call-is-noted-before-it-is-made",
        file="layers/core/roundsman/agents/attempt.py",
        old="                self.note.before_call()\n",
        new="                pass\n",
        tests=(
            "tests/world/test_effects.py::test_a_request_that_was_given_back_and_comes_once_more_charges_nobody_a_second_time",
        ),
        why="a copy of what was given back is done, and another agent does it too",
    ),
    Mutant(
        name="what-is-closed-is-not-called",
        file=CORE,
        old="if begun is Begun.CLOSED:",
        new="if begun is None:",
        tests=(f"{UNIT}::test_a_copy_of_a_request_that_was_given_back_so_is_not_called_any_more",),
        why="the same",
    ),
    Mutant(
        name="what-cannot-be-noted-is-not-called",
        file=CORE,
        old='raise NotNoted("the note of the call could not be written; not attempted") from error',
        new="begun = Begun.AGAIN",
        tests=(f"{UNIT}::test_a_call_that_cannot_be_noted_for_now_is_not_made",),
        why="a call is made of which no later proof knows",
    ),
    Mutant(
        name="a-refusal-after-another-try-is-no-proof",
        file=CORE,
        old="refused and may_have_acted == 1",
        new="refused and may_have_acted >= 1",
        tests=(f"{UNIT}::test_a_refusal_after_another_try_of_the_attempt_is_no_proof",),
        why="the first try may have been taken",
    ),
    Mutant(
        name="a-refusal-of-what-was-read-before-is-no-proof",
        file=CORE,
        old="if calls and self.request.read_before:",
        new="if not calls and self.request.read_before:",
        tests=(f"{UNIT}::test_a_refusal_of_what_was_read_before_is_no_proof",),
        why="a refusal proves more than it says",
    ),
    Mutant(
        name="a-failure-without-the-promise-is-no-proof",
        file=CORE,
        old="calls > 0 and not may_have_acted",
        new="calls > 0",
        tests=(f"{UNIT}::test_one_try_without_the_promise_takes_the_proof_away",),
        why="a call may have had its effect, and another agent does it too",
    ),
    Mutant(
        name="what-may-have-happened-before-is-never-disproved",
        file=CORE,
        old="if not (given_back or refused or failed) or self.request.outcome_unknown:",
        new="if not (given_back or refused or failed):",
        tests=(f"{UNIT}::test_a_request_that_may_have_had_its_effect_before_proves_nothing",),
        why="the note of a call is gone, and its effect with it",
    ),
    Mutant(
        name="a-claims-requests-are-closed-together",
        file=CORE,
        old="claim = claim_of(self.request.lock) or 0",
        new="claim = (claim_of(self.request.lock) or 0) * 1_000 + self.request.sent_at % 1_000",
        tests=(
            f"{UNIT}::test_a_request_that_is_sent_twice_for_one_claim_is_closed_with_the_other",
        ),
        why="a request that was sent twice is done at one agent, and the step at another",
    ),
    Mutant(
        name="no-proof-after-the-time",
        file=CORE,
        old="or self.clock() >= self.ends_at:",
        new="or self.clock() < 0:",
        tests=(f"{UNIT}::test_no_time_is_taken_for_a_proof_once_the_attempt_is_over",),
        why="a proof takes the time of its reply",
    ),
    Mutant(
        name="a-note-takes-time-too",
        file="layers/core/roundsman/agents/attempt.py",
        old=("                self.note.before_call()\n            began = request.clock()\n"),
        new=(
            "                began = request.clock()\n"
            "                self.note.before_call()\n"
            "            else:\n"
            "                began = request.clock()\n"
        ),
        tests=(f"{UNIT}::test_a_note_that_takes_the_time_of_the_call_leaves_it_unmade",),
        why="a call begins after its complete-by",
    ),
    Mutant(
        name="a-closed-key-is-closed",
        file=DYNAMO,
        old='MAY_CALL = "attribute_not_exists(ClosedUpTo) OR ClosedUpTo < :claim"',
        new='MAY_CALL = "attribute_not_exists(ClosedUpTo) OR ClosedUpTo <= :claim"',
        tests=(f"{CONTRACT}::test_no_copy_of_a_request_whose_key_was_closed_may_call[moto]",),
        why="a copy of what was given back is done, and another agent does it too",
    ),
    Mutant(
        name="a-key-that-was-called-is-not-closed",
        file=DYNAMO,
        old='NO_OTHER_CALL = "(attribute_not_exists(Calls) OR Calls = :calls)"',
        new='NO_OTHER_CALL = "(attribute_not_exists(Calls) OR Calls >= :calls)"',
        tests=(
            f"{CONTRACT}::test_where_a_call_was_noted_the_key_is_not_closed[moto]",
            f"{CONTRACT}::test_who_called_first_does_not_close_the_key_once_a_second_call_was_noted[moto]",
        ),
        why="a call with an effect is taken for none",
    ),
    Mutant(
        name="a-key-is-never-opened-again",
        file=DYNAMO,
        old='NOT_CLOSED_FURTHER = "(attribute_not_exists(ClosedUpTo) OR ClosedUpTo <= :claim)"',
        new='NOT_CLOSED_FURTHER = "(attribute_not_exists(ClosedUpTo) OR ClosedUpTo > :none)"',
        tests=(
            f"{CONTRACT}::test_a_copy_of_an_older_request_opens_nothing_that_was_closed_since[moto]",
        ),
        why="a copy of an older request lets a newer one's copies call",
    ),
    Mutant(
        name="a-refused-closing-is-no-proof",
        file=DYNAMO,
        old='return row.number("Calls", 0) == 0 and row',
        new="return row",
        tests=(f"{CONTRACT}::test_a_key_that_was_called_since_it_was_closed_proves_nothing[moto]",),
        why="a key that was closed and called since is taken for one that was not called",
    ),
)
