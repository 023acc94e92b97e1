"""When a mark proves that a request was never read, and when it proves nothing.

NOTED is the request whose reading was noted; THE_STEP's request is the one in question, which a
supervisor finds overdue. The machine takes it for never read where it was sent after `read_up_to`.
"""

from roundsman.model.holds import OPERATOR, Hold, with_holds
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import (
    MARK_INTERVAL,
    MARK_UNCERTAINTY,
    PROMPT,
    PROMPT_MARK_INTERVAL,
    PROMPT_MARK_UNCERTAINTY,
    ReadMark,
    ReadMarkWriter,
    queue_key,
    view_of_mark,
)

READ = 1_790_000_000_000


def never_read(mark: ReadMark, sent_at: int, now: int) -> bool:
    read_up_to = view_of_mark(mark, now).read_up_to
    assert read_up_to is not None
    return sent_at > read_up_to


def test_a_request_read_just_after_a_mark_by_an_agent_that_then_died_may_have_been_read() -> None:
    """The agent wrote a mark, read on unnoted, and was killed; nobody reads since."""
    mark = ReadMark(sent_at=READ - 100, read_at=READ)
    for sent_at in (READ - 50, READ + SECOND, READ + PROMPT_MARK_INTERVAL - 1):
        for overdue_at in (sent_at + SECOND, sent_at + 30 * SECOND, sent_at + 60 * MINUTE):
            assert not never_read(mark, sent_at, overdue_at)


def test_a_backlog_that_was_read_unnoted_within_seconds_may_have_been_read() -> None:
    """The first of ten requests had waited a minute and was noted; the rest followed at once."""
    mark = ReadMark(sent_at=READ - MINUTE, read_at=READ)
    assert not never_read(mark, READ - SECOND, now=READ + 30 * SECOND)


def test_clocks_that_differ_by_seconds_prove_nothing() -> None:
    mark = ReadMark(sent_at=READ, read_at=READ)
    ahead = READ + PROMPT_MARK_INTERVAL + 4 * SECOND  # the agent's clock is 4 s behind
    assert not never_read(mark, ahead, now=ahead + 30 * SECOND)


def test_a_queue_that_nobody_reads_any_more_has_its_later_requests_never_read() -> None:
    prompt = ReadMark(sent_at=READ - PROMPT, read_at=READ)
    late = ReadMark(sent_at=READ - PROMPT - 1, read_at=READ)
    for now in (READ + MINUTE, READ + 60 * MINUTE):
        assert not never_read(prompt, READ + PROMPT_MARK_UNCERTAINTY, now)
        assert never_read(prompt, READ + PROMPT_MARK_UNCERTAINTY + 1, now)
        assert not never_read(late, READ + PROMPT_MARK_UNCERTAINTY, now)
        assert never_read(late, READ + PROMPT_MARK_UNCERTAINTY + 1, now)


def test_reads_that_another_instance_did_not_note_are_covered_by_the_mark_of_a_late_one() -> None:
    """A prompt instance notes its reads, then a late one; the prompt one reads on unnoted."""
    late = ReadMark(sent_at=READ - MINUTE, read_at=READ)
    clocks_differ_by = 4 * SECOND
    assert not never_read(late, READ + PROMPT_MARK_INTERVAL + clocks_differ_by, now=READ + MINUTE)


def test_a_request_that_is_read_unnoted_before_the_next_prompt_mark_may_have_been_read() -> None:
    mark = ReadMark(sent_at=READ - PROMPT, read_at=READ)
    just_before = READ + PROMPT_MARK_INTERVAL - 1
    assert not never_read(mark, just_before, now=just_before)


def test_while_requests_are_read_promptly_a_mark_is_due_half_as_often() -> None:
    notebook = ReadMarkWriter()
    notebook.written(ReadMark(READ - PROMPT, READ))
    just_before = READ + PROMPT_MARK_INTERVAL - 1
    assert notebook.read(just_before - PROMPT, just_before) is None
    due = READ + PROMPT_MARK_INTERVAL
    assert notebook.read(due - PROMPT, due) == ReadMark(due - PROMPT, due)


def test_a_request_that_has_waited_is_noted_as_soon_as_in_a_backlog() -> None:
    notebook = ReadMarkWriter()
    notebook.written(ReadMark(READ, READ))
    soon = READ + MARK_INTERVAL
    assert notebook.read(soon - 1 - PROMPT - 1, soon - 1) is None
    assert notebook.read(soon - PROMPT - 1, soon) == ReadMark(soon - PROMPT - 1, soon)


def test_after_the_mark_of_a_backlog_the_next_is_due_as_soon_even_if_its_request_was_prompt() -> (
    None
):
    notebook = ReadMarkWriter()
    notebook.written(ReadMark(READ - PROMPT - 1, READ))
    soon = READ + MARK_INTERVAL
    assert notebook.read(soon, soon) == ReadMark(soon, soon)


def test_what_waits_behind_a_reader_that_is_far_behind_was_never_read() -> None:
    """A backlog of ten minutes, read all the time: a step overdue now is still in the queue."""
    now = READ + SECOND
    mark = ReadMark(sent_at=READ - 10 * MINUTE, read_at=READ)
    assert never_read(mark, now - 60 * SECOND, now)
    assert not never_read(mark, READ - 10 * MINUTE + MARK_UNCERTAINTY, now)


def test_a_request_read_before_it_was_sent_has_not_waited() -> None:
    assert view_of_mark(ReadMark(sent_at=READ + SECOND, read_at=READ), READ).lag == 0


def test_a_notebook_never_notes_a_time_that_has_not_come() -> None:
    mark = ReadMarkWriter().read(READ + MINUTE, now=READ)
    assert mark == ReadMark(READ, READ)


def test_one_old_redelivered_request_does_not_speak_for_its_queue() -> None:
    notebook = ReadMarkWriter()
    first = notebook.read(READ, READ)
    assert first is not None
    notebook.written(first)
    assert notebook.read(READ + 9 * SECOND, READ + 9 * SECOND) is None
    assert notebook.read(READ - 60 * MINUTE, READ + 10 * SECOND) == ReadMark(
        READ + 9 * SECOND, READ + 10 * SECOND
    )


def test_the_lag_of_a_slow_reader_is_news_until_it_can_have_read_again() -> None:
    """Its calls take ten minutes: between two of them nobody else says how long the queue is."""
    notebook = ReadMarkWriter()
    assert notebook.read(READ, READ) == ReadMark(READ, READ)
    second = READ + 10 * MINUTE
    mark = notebook.read(READ, second)
    assert mark == ReadMark(READ, second, lag_valid_for=20 * MINUTE)
    assert view_of_mark(mark, second + 20 * MINUTE).lag == 10 * MINUTE
    assert view_of_mark(mark, second + 20 * MINUTE).reads == READ
    assert view_of_mark(mark, second + 20 * MINUTE + 1).lag == 0
    assert view_of_mark(mark, second + 20 * MINUTE + 1).reads is None


def test_a_reader_that_was_idle_before_says_nothing_for_longer_than_its_request_had_waited() -> (
    None
):
    notebook = ReadMarkWriter()
    notebook.read(READ, READ)
    later = READ + 60 * MINUTE
    assert notebook.read(later - SECOND, later) == ReadMark(later - SECOND, later)
    again = later + 60 * MINUTE
    assert notebook.read(again - 5 * MINUTE, again) == ReadMark(
        again - 5 * MINUTE, again, 10 * MINUTE
    )


def test_no_lag_is_news_for_longer_than_twice_the_longest_call() -> None:
    notebook = ReadMarkWriter()
    notebook.read(READ, READ)
    mark = notebook.read(READ, READ + 20 * 60 * MINUTE)
    assert mark is not None
    assert mark.lag_valid_for == 30 * MINUTE


def test_a_queue_of_which_only_a_hold_is_known_was_never_read() -> None:
    """A hold makes a view without a mark; of an agent that was read, the mark says otherwise."""
    read = view_of_mark(ReadMark(sent_at=READ, read_at=READ), READ)
    held = [Hold(agent, OPERATOR, READ, READ + MINUTE, "", "ann") for agent in ("kitchen", "oven")]
    views = with_holds({queue_key("oven", "normal"): read}, held, READ)
    assert {queue: found.unread for queue, found in views.items() if queue.endswith("/normal")} == {
        "kitchen/normal": True,
        "oven/normal": False,
    }
