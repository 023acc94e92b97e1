"""The guards of what an author's function raises, alone or side by side."""

from tools.mutants.mutant import Mutant

ERRORS = "layers/core/roundsman/agents/author_errors.py"
ATTEMPT = "layers/core/roundsman/agents/attempt.py"

TESTS = "tests/unit/agents/test_author_errors.py"

RAISED = (
    Mutant(
        name="what-claims-the-least-decides",
        file=ERRORS,
        old="key=lambda leaf: (_weight(leaf), _type(leaf))",
        new="key=_type",
        tests=(f"{TESTS}::test_of_several_errors_one_decides_and_all_are_named",),
        why="a refusal beside an outage is tried again until the step's last attempt",
    ),
    Mutant(
        name="a-group-in-a-group-is-opened",
        file=ERRORS,
        old="for leaf in leaves_of(inner)]",
        new="for leaf in [inner]]",
        tests=(
            f"{TESTS}::test_the_only_error_of_a_group_ends_the_attempt_as_that_error_does",
            f"{TESTS}::test_each_unexpected_error_of_a_group_is_reported_and_no_other",
        ),
        why="a refusal in a group of a group is taken for a defect",
    ),
    Mutant(
        name="no-effect-is-what-all-calls-promise",
        file=ERRORS,
        old="return all(isinstance(one, TransientError) and one.no_effect",
        new="return any(isinstance(one, TransientError) and one.no_effect",
        tests=(f"{TESTS}::test_a_group_is_tried_again_in_the_attempt_if_each_error_may_pass",),
        why="a call that took effect beside one that did nothing is made again without its probe",
    ),
    Mutant(
        name="a-refusal-beside-other-calls-leaves-the-outcome-unknown",
        file=ATTEMPT,
        old="outcome_unknown=raised.side_by_side)",
        new="outcome_unknown=False)",
        tests=(f"{TESTS}::test_a_refusal_in_a_group_leaves_the_outcome_unknown",),
        why="the call beside the refused one took effect, and is never undone",
    ),
    Mutant(
        name="the-breaker-sees-the-error-and-not-the-group",
        file=ATTEMPT,
        old=(
            "        except ExceptionGroup as group:\n            self._last = raised_by(group)\n"
        ),
        new=(
            "        except ExceptionGroup as group:\n"
            "            self._last = raised_by(group)\n"
            "            raise\n"
        ),
        tests=(f"{TESTS}::test_the_guard_sees_the_error_that_decides",),
        why="a service that is down for calls side by side never opens its circuit",
    ),
    Mutant(
        name="the-longest-wait-is-kept",
        file=ERRORS,
        old="return max((wait for wait in waits",
        new="return min((wait for wait in waits",
        tests=(f"{TESTS}::test_the_longest_wait_that_a_service_asks_for_is_kept",),
        why="a service that asks to be left alone is called too soon",
    ),
    Mutant(
        name="errors-beside-are-named-in-one-order",
        file=ERRORS,
        old="times = sorted(Counter(listed).items())",
        new="times = list(Counter(listed).items())",
        tests=(f"{TESTS}::test_errors_of_one_type_are_named_in_one_order_however_their_calls_end",),
        why="failures of one cause are several incidents, by the order in which the calls ended",
    ),
    Mutant(
        name="a-file-is-no-network",
        file=ERRORS,
        old="isinstance(error, OSError) and not isinstance(error, OF_FILES)",
        new="isinstance(error, OSError)",
        tests=(f"{TESTS}::test_of_several_errors_one_decides_and_all_are_named",),
        why="a file that was not deployed fails orders instead of waiting for its deployment",
    ),
    Mutant(
        name="only-roundsmans-own-refusal-is-quoted",
        file=ERRORS,
        old="return caller if innermost == OWN else None",
        new="return caller",
        tests=(
            f"{TESTS}::test_the_text_of_any_other_error_stays_in_the_log",
            f"{TESTS}::test_an_error_of_the_authors_own_code_below_roundsman_keeps_its_text",
        ),
        why="an alert quotes what a customer typed",
    ),
    Mutant(
        name="the-place-is-the-authors",
        file=ERRORS,
        old="        if innermost != OWN and innermost not in sys.stdlib_module_names:\n",
        new="        if innermost != OWN:\n",
        tests=(
            f"{TESTS}::test_a_call_that_a_thread_makes_for_a_function_has_the_place_of_the_function",
        ),
        why="the alert names a line of Python's own library",
    ),
)
