"""The verb on a failure group: writing a note on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated

from roundsman.wire.limits import wire_text
from roundsman_console.acts.verb import (
    Argument,
    Asked,
    FieldKind,
    Form,
    Preview,
    StackVerb,
    Subject,
)
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.constraints import GROUP_ID
from roundsman_console.base.errors import InvalidArgument, NotFound
from roundsman_console.base.limits import LONGEST_NOTE
from roundsman_console.base.result import Noun, Result
from roundsman_console.facts.group.reading import NEWEST, NO_SUCH_GROUP
from roundsman_console.facts.order.lookup import masked_text


def read_group(text: str) -> str:
    """Return the id of a failure group. Raises InvalidArgument if it cannot be one."""
    if not GROUP_ID.fullmatch(text):
        raise InvalidArgument(NO_SUCH_GROUP)
    return text


def read_note(text: str) -> str:
    """Return the text of a note in one line, as it can be stored.

    Raises InvalidArgument if it is empty or longer than LONGEST_NOTE characters.
    """
    words = wire_text(" ".join(text.split()))
    if not words:
        raise InvalidArgument("The note is empty.")
    if len(words) > LONGEST_NOTE:
        raise InvalidArgument(f"The note has {len(words):,} characters; at most {LONGEST_NOTE:,}.")
    return words


@dataclass(frozen=True, slots=True)
class NoteWritten(Result):
    """A note that was written."""

    note: GroupNote
    """As it is stored: without the values that the workflow masks."""

    def words(self) -> Sequence[str]:
        return [f"Done: the note on {self.note.group} is stored for 90 days."]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVerb(StackVerb):
    """Write a note on a failure group, for others who look at it.

    The page of the group, `roundsman groups show` and `roundsman shift` show it for 90 days, also
    when the group is over. A value that the workflow masks is not stored if one of the 50 newest
    orders of the group has it.

    Example: roundsman groups note f-1a2b3c4d "The bank is told, and calls back at 09:00 UTC."
    """

    name = "groups note"
    title = "Write a note"
    reason = ""
    reason_options = ()
    needs_reason = "none"
    signed = True
    at_once = True
    document = NoteWritten
    noun = Noun.GROUPS

    group: Annotated[
        str, Argument(metavar="GROUP", help="The group: f-1a2b3c4d.", label="", read=read_group)
    ]
    text: Annotated[
        str,
        Argument(
            kind=FieldKind.BODY,
            metavar="TEXT",
            help=f"The note, at most {LONGEST_NOTE:,} characters; a line break becomes a space.",
            label="Note",
            hint=f"at most {LONGEST_NOTE:,} characters",
            read=read_note,
        ),
    ]

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        del stack
        group = given.get("group", "")
        if not GROUP_ID.fullmatch(group):
            raise NotFound(NO_SUCH_GROUP)
        return Subject(group, {"group": group})

    def preview(self, stack: DeployedStack) -> Preview:
        return Preview(f"The note would be on {self.group}.", partial(self._write, stack))

    def _write(self, stack: DeployedStack, asked: Asked) -> NoteWritten:
        at = now()
        newest = islice(stack.members(self.group, newest_first=True), NEWEST)
        orders = stack.records.load_many([one.task_id for one in newest], at).tasks.values()
        words = masked_text(stack, orders, self.text)
        note = GroupNote(at=at, group=self.group, by=wire_text(asked.by), text=words)
        stack.group_notes.add(note)
        return NoteWritten(note)
