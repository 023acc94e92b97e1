"""What the verb of a note reads, stores and refuses."""

from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from roundsman.model.task import Task
from roundsman_console.acts import note
from roundsman_console.acts.note import NoteVerb
from roundsman_console.acts.verb import Asked
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import NotFound
from tests.console.shelves import Shelves, archived
from tests.console.step_samples import AT


def test_a_note_is_masked_by_the_newest_orders_of_its_group_and_has_who_wrote_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelves, stored, asked = Shelves(), list[GroupNote](), list[str]()
    shelves.put(*(archived(f"ord-{place:02}", AT + place) for place in range(60)))
    stack = shelves.stack()
    stack.__dict__["group_notes"] = SimpleNamespace(add=stored.append)

    def masked(_stack: DeployedStack, tasks: Iterable[Task], words: str) -> str:
        asked.extend(task.task_id for task in tasks)
        return words.replace("tok_1", "(masked)")

    monkeypatch.setattr(note, "masked_text", masked)
    monkeypatch.setattr(note, "now", lambda: AT)
    group = str(archived("ord-00").failure)
    asks = NoteVerb(group=group, text="tok_1 is right").preview(stack)
    assert asks.sentence == f"The note would be on {group}."
    assert not stored, "a preview writes nothing"
    asks.go(Asked(by="am\ud800y", reason="", wait=0))
    assert asked == [f"ord-{place:02}" for place in range(59, 9, -1)]
    assert stored == [GroupNote(at=AT, group=group, by="am\\ud800y", text="(masked) is right")]


@pytest.mark.parametrize("given", [{}, {"group": ""}, {"group": "f-1a2b3c4dx"}])
def test_a_form_about_no_group_is_not_there(given: dict[str, str]) -> None:
    with pytest.raises(NotFound, match="There is no such failure group"):
        NoteVerb.subject(Shelves().stack(), given)
