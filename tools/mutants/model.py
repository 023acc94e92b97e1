"""The guards of the model: keys, locks, and what is known of queues."""

from tools.mutants.mutant import Mutant

MODEL = (
    Mutant(
        name="round-in-the-key",
        file="layers/core/roundsman/model/task.py",
        old=("    if record.round > 1:\n        parts.append(str(record.round))\n"),
        new="",
        tests=(
            "tests/unit/engine/test_operator_resubmit.py::test_a_task_that_was_undone_begins_again_only_if_asked_explicitly_and_under_new_keys",
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
        name="a-slow-readers-lag-is-news",
        file="layers/core/roundsman/model/queue_lag.py",
        old="min(max(LAG_VALID_FOR, 2 * min(apart, waited)), LAG_VALID_AT_MOST)",
        new="LAG_VALID_FOR",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_the_lag_of_a_slow_reader_is_news_until_it_can_have_read_again",
            "tests/overload/test_agent_queue.py::test_no_healthy_order_fails_of_a_long_queue_and_no_attempt_of_one_is_counted",
        ),
        why="the queue of a slow service is taken for empty",
    ),
    Mutant(
        name="a-backlog-is-noted-soon",
        file="layers/core/roundsman/model/queue_lag.py",
        old="prompt = self._was_prompt and waited <= PROMPT",
        new="prompt = self._was_prompt",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_a_request_that_has_waited_is_noted_as_soon_as_in_a_backlog",
        ),
        why="the begin of a backlog is noticed later",
    ),
    Mutant(
        name="the-mark-of-a-backlog-is-followed-soon",
        file="layers/core/roundsman/model/queue_lag.py",
        old="prompt = self._was_prompt and waited <= PROMPT",
        new="prompt = waited <= PROMPT",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_after_the_mark_of_a_backlog_the_next_is_due_as_soon_even_if_its_request_was_prompt",
        ),
        why="a request that was read is taken for never read, and its attempt is not counted",
    ),
    Mutant(
        name="a-prompt-mark-is-uncertain-for-longer",
        file="layers/core/roundsman/model/queue_lag.py",
        old="PROMPT_MARK_UNCERTAINTY if lag <= PROMPT else MARK_UNCERTAINTY",
        new="MARK_UNCERTAINTY",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_a_request_that_is_read_unnoted_before_the_next_prompt_mark_may_have_been_read",
        ),
        why="a request that was read is taken for never read, and its attempt is not counted",
    ),
    Mutant(
        name="reads-of-another-instance-are-uncertain-too",
        file="layers/core/roundsman/model/queue_lag.py",
        old="else mark.read_at + PROMPT_MARK_UNCERTAINTY",
        new="else mark.read_at + uncertainty",
        tests=(
            "tests/unit/model/test_queue_lag.py::test_reads_that_another_instance_did_not_note_are_covered_by_the_mark_of_a_late_one",
        ),
        why="a request that was read is taken for never read, and its attempt is not counted",
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
    Mutant(
        name="a-hold-on-orders-lets-their-undos-go-on",
        file="layers/core/roundsman/model/holds.py",
        old="_together([hold for hold in found if hold.undos])",
        new="_together(found)",
        tests=("tests/unit/engine/test_order_holds.py::test_an_undo_goes_on",),
        why="an order that has failed stays half undone until a hold on it ends",
    ),
    Mutant(
        name="lock-given-once",
        file="layers/core/roundsman/model/events.py",
        old='return f"{self.instance}-{self.nonce}.{attempt}.{version}"',
        new='return f"{self.instance}-{self.nonce}.{attempt}"',
        tests=(
            "tests/unit/scheduler/test_redelivery.py::test_a_request_that_was_not_sent_in_its_time_is_another_claim_with_another_lock",
        ),
        why="a late answer to one request counts for a later one of the same attempt",
    ),
    Mutant(
        name="a-mark-in-a-list-masks",
        file="layers/core/roundsman/definition/input_types.py",
        old='            yield from _masked_in(inner, f"{here}[]", above, again)\n',
        new="            pass\n",
        tests=(
            "tests/unit/model/test_marks_and_limits.py::test_a_mark_masks_wherever_it_stands_in_a_type",
        ),
        why="the console shows what the author marked as masked",
    ),
    Mutant(
        name="a-class-is-no-mark",
        file="layers/core/roundsman/definition/input_types.py",
        old="        if isinstance(limit, type) and (known or package in _OTHER_PACKAGES):",
        new="        if False:",
        tests=(
            "tests/unit/model/test_marks_and_limits.py::test_a_limit_that_would_be_ignored_is_refused",
        ),
        why="Masked without parentheses masks nothing",
    ),
    Mutant(
        name="only-json-numbers-are-amounts",
        file="layers/core/roundsman/definition/expressions.py",
        old="        return Decimal(value) if _AMOUNT.fullmatch(value) else None",
        new="        return Decimal(value)",
        tests=(
            "tests/unit/definition/test_expressions.py::test_other_text_is_text_and_not_an_amount",
        ),
        why="full-width digits are an amount",
    ),
    Mutant(
        name="no-digit-is-lost",
        file="layers/core/roundsman/submission/events.py",
        old=" or _not_text(event) or not_kept(body)\n        if order_id",
        new=" or _not_text(event)\n        if order_id",
        tests=(
            "tests/unit/submission/test_made_input.py::test_bad_input_is_answered_with_one_sentence",
        ),
        why="another amount is charged than was sent",
    ),
)
