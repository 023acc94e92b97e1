"""The guards of messages that wait for a person: looking takes nothing, sending loses nothing."""

from tools.mutants.mutant import Mutant

RESENDING = "console/roundsman_console/acts/set_aside/again.py"

LETTERS = (
    Mutant(
        name="looking-moves-nothing",
        file="console/roundsman_console/facts/set_aside/queues.py",
        old='if "RedrivePolicy" in found:',
        new='if "RedrivePolicy" not in _ASKED:',
        tests=(
            "tests/console/test_rejected.py::test_a_queue_with_dead_letters_of_its_own_is_not_looked_into",
        ),
        why="a message that was looked at too often is moved away",
    ),
    Mutant(
        name="what-was-looked-at-is-let-go",
        file="console/roundsman_console/facts/set_aside/peek.py",
        old="held = list(self._held.values())",
        new="held: list[str] = []",
        tests=(
            "tests/console/test_rejected.py::test_what_was_put_aside_is_listed_and_stays_where_it_is",
        ),
        why="whoever looks next sees nothing",
    ),
    Mutant(
        name="a-message-is-sent-before-it-is-deleted",
        file=RESENDING,
        old='new_id = source.sqs.send_message(**request)["MessageId"]\n'
        "    for letter in message.letters:\n        look.delete(letter)\n",
        new="for letter in message.letters:\n        look.delete(letter)\n"
        '    new_id = source.sqs.send_message(**request)["MessageId"]\n',
        tests=(
            "tests/console/test_rejected.py::test_it_is_sent_before_it_is_deleted",
            "tests/console/test_dlq.py::test_what_is_interrupted_loses_nothing",
        ),
        why="a death in between loses a message",
    ),
    Mutant(
        name="what-would-be-rejected-again-is-not-sent",
        file=RESENDING,
        old="new_id = None if dry_run or refused else",
        new="new_id = None if dry_run else",
        tests=(
            "tests/console/test_rejected.py::test_one_that_would_be_rejected_again_is_not_sent_and_says_all_that_is_wrong",
        ),
        why="a person believes that an order was corrected",
    ),
    Mutant(
        name="more-than-one-dead-letter-is-only-listed",
        file="console/roundsman_console/faces/commands/set_aside.py",
        old="return yes or len(result.assessed) <= 1",
        new="return True",
        tests=(
            "tests/console/test_dlq.py::test_more_than_one_are_only_listed_until_a_person_says_yes",
        ),
        why="a typing error sends a thousand messages",
    ),
)
