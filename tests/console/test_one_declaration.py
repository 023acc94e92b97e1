"""A verb that is declared, and nothing else of it, is in every place where people look for it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner
from typer.testing import Result as Typed

from roundsman.model.events import CommandSource, Extend, OperatorEvent
from roundsman.model.states import TaskState
from roundsman_console.acts import verbs
from roundsman_console.acts.order.verbs import OrderVerb
from roundsman_console.acts.verb import Argument, Asked, Confirmed, Preview, Progress, StackVerb
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base.hints import hint, remember_stack
from roundsman_console.base.result import EPOCH_MS, MS, Result, Shown
from roundsman_console.base.typed_inputs import read_duration
from roundsman_console.faces.cli import confirm
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.form_registry import commands
from roundsman_console.inspector import Inspector
from roundsman_console.main import app
from tests.console.operators import Operator, in_retry
from tests.web.browsers import PORT, Browser
from tools import command_table, reference
from tools.schemas import files, schema_of


@dataclass(frozen=True, slots=True)
class Greeted(Result):
    """A guest who was greeted."""

    guest: str
    greeted_at: Annotated[int, Shown("Greeted", EPOCH_MS)]
    lasted: Annotated[int, Shown("It took", MS)]
    """How long it took, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetVerb(StackVerb):
    """Greet a guest of the stack.

    Example: roundsman greet ann --times 2 --reason "she is here"
    """

    name, title, reason, document = "greet", "Greet", "Why, for the guest.", Greeted
    guest: Annotated[str, Argument(help="Who is greeted.")]
    times: Annotated[int, Argument("--times", "How often.", read=int)] = 1

    def preview(self, stack: DeployedStack) -> Preview:
        def go(asked: Asked) -> Greeted:
            return Greeted(f"{self.guest} of {stack.name}, by {asked.by}", 0, 1_500 * self.times)

        return Preview(f"{self.guest} would be greeted.", go)


@dataclass(frozen=True, slots=True, kw_only=True)
class HurryVerb(OrderVerb):
    """Give an order more time, although it is in a hurry.

    Example: roundsman hurry ord-1 --more 10m --reason "she is here"
    """

    name, title, states = "hurry", "Hurry", frozenset({TaskState.RETRY})
    participle = "hurried"
    seconds: Annotated[int, Argument("--more", "How much more.", read=read_duration)]
    step: Annotated[str | None, Argument("--at", "The step that is slow.")] = None

    def event(self, asked: CommandSource) -> OperatorEvent:
        return Extend(asked, self.seconds, self.step)


SEEN: list[str] = []
"""What has happened to guests who are seen off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeOffVerb(GreetVerb):
    """See a guest off, which takes a while.

    Example: roundsman see-off ann --reason "she leaves" --yes
    """

    name, title, confirmed = "see-off", "See off", Confirmed.BY_YES

    def preview(self, stack: DeployedStack) -> Preview:
        def go(_asked: Asked) -> Greeted:
            SEEN.append("gone")
            return Greeted(self.guest, 0, 0)

        def goes_on(_done: Result, _progress: Progress) -> Iterator[Result]:
            yield Greeted(f"the bag of {self.guest}", 0, 0)
            SEEN.append("waved")
            yield Greeted(f"the hat of {self.guest}", 0, 0)

        return Preview(
            f"{self.guest} would leave.",
            go,
            question=f"See {self.guest} off?",
            goes_on=goes_on,
            close=lambda: SEEN.append("closed"),
        )


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "VERBS", (*verbs.VERBS, GreetVerb, HurryVerb, SeeOffVerb))
    SEEN.clear()


@pytest.fixture
def browser(operator: Operator) -> Iterator[Browser]:
    session = BrowserSession(PORT)
    inspector = Inspector(find_stack(None))
    with TestClient(application(inspector, session), base_url=session.address) as client:
        client.get(session.link_to())
        yield Browser(client, session, operator, inspector)


def tries(*words: str, answer: str | None = None) -> Typed:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, words, input=answer)


def types(*words: str, verb: str = "greet") -> str:
    result = tries(verb, *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_a_command_with_help_and_options() -> None:
    shown = types("--help")
    assert "Greet a guest of the stack." in shown
    for words in ("Who is greeted.", "--times", "--reason", "--by", "--stack", "--json", "--yes"):
        assert words in shown


@pytest.mark.usefixtures("operator")
def test_its_result_is_printed_as_lines_and_as_json() -> None:
    said = ("ann", "--times", "2", "--reason", "she is here", "--by", "bob")
    assert types(*said) == (
        "Guest: ann of roundsman, by bob\nGreeted: 1970-01-01T00:00:00Z\nIt took: 3 s\n"
    )
    assert json.loads(types(*said, "--json")) == {
        "guest": "ann of roundsman, by bob",
        "greetedAt": "1970-01-01T00:00:00.000Z",
        "lasted": 3.0,
    }


def test_its_json_has_a_schema() -> None:
    found = schema_of("greet")
    assert found["description"] == "A guest who was greeted."
    assert found["required"] == ["guest", "greetedAt", "lasted"]
    fields = found["properties"]
    assert isinstance(fields, dict)
    assert fields["greetedAt"]["format"] == "date-time"
    assert fields["lasted"] == {
        "type": "number",
        "minimum": 0,
        "description": "How long it took, in seconds.",
    }
    assert "greet.json" in files()


def test_it_is_in_the_help_and_its_printed_command_names_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.json"
    table.write_text(command_table.text(), encoding="utf-8")
    monkeypatch.setattr("roundsman_console.base.command_table.TABLE", table)
    shown = types(verb="--help")
    assert re.search(r"greet +Greet a guest of the stack\.", shown)
    assert re.search(r"hurry +Give an order more time, although", shown)
    remember_stack("shop")
    assert hint("roundsman greet ann") == "roundsman greet --stack shop ann"


@pytest.mark.exhaustive
def test_it_is_in_the_history_and_on_the_page_of_the_order_to_which_it_was_sent(
    browser: Browser,
) -> None:
    in_retry(browser.operator)
    said = ("--more", "10m", "--reason", "she is here", "--by", "bob")
    assert "Done: extend by bob: she is here" in types("ord-1", *said, verb="hurry")
    for looked in ("show", "timeline"):
        assert "extend by bob: she is here" in types("ord-1", verb=looked)
    assert "extend by bob: she is here" in browser.page("/orders/ord-1")
    assert 'href="/commands/hurry?order=ord-1"' in browser.html("/orders/ord-1")
    fields = {"order": "ord-1", "seconds": "10m", "reason": "once more"}
    assert "extend of ord-1 is possible" in browser.sends("hurry", **fields)
    assert "The history of ord-1 has: extend by " in browser.carries_out("hurry", **fields)
    assert {"hurry", "hurry-all"} <= commands().keys()


@pytest.mark.usefixtures("operator")
def test_what_is_to_be_confirmed_is_not_done_without_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("see-off", "ann", "--reason", "she leaves")
    script = tries(*asked)
    assert (script.exit_code, script.stdout, SEEN) == (2, "", ["closed"])
    assert "See ann off? There is no terminal to confirm at: add --yes." in script.stderr
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    refused = tries(*asked, answer="n\n")
    assert (refused.exit_code, SEEN) == (1, ["closed", "closed"])
    assert "See ann off? [y/N]" in refused.stderr
    without = tries("see-off", "ann", "--yes", "--reason", " ")
    assert (without.exit_code, without.stderr) == (2, "--reason is empty.\n")
    assert len(SEEN) == 2, "it was not looked at"
    tries(*asked, answer="y\n")
    assert SEEN[2:] == ["gone", "closed", "waved"]


def test_each_part_of_the_rest_is_printed_and_followed_on_its_page(
    browser: Browser,
) -> None:
    done = tries("see-off", "ann", "--reason", "x", "--yes")
    assert [line for line in done.stdout.splitlines() if line.startswith("Guest")] == [
        "Guest: ann",
        "Guest: the bag of ann",
        "Guest: the hat of ann",
    ]
    as_json = json.loads(tries("see-off", "ann", "--reason", "x", "--yes", "--json").stdout)
    assert as_json["guest"] == "the hat of ann"
    SEEN.clear()
    work = browser.work("see-off", guest="ann", times="1", reason="x")
    assert work.result is not None
    assert work.result.good
    assert SEEN == ["closed", "gone", "closed", "waved"]


def test_it_is_in_the_reference() -> None:
    block = reference.commands()
    assert "### roundsman hurry" in block
    assert "### roundsman greet" in block
    assert "- `GUEST`: Who is greeted." in block
    assert '--times 2 --reason "she is here"' in block


def test_it_is_a_form_that_shows_first_what_it_would_do(browser: Browser) -> None:
    assert "greet" in commands()
    journal: list[str] = []
    browser.session.journal = journal.append
    assert "Greet a guest of the stack." in browser.page("/commands/greet")
    wrong = browser.sends("greet", guest="", reason="")
    assert "Nothing was sent" in wrong
    fields = {"guest": "ann", "times": "2", "reason": "she is here"}
    assert "ann would be greeted." in browser.sends("greet", **fields)
    assert journal == []
    page = browser.carries_out("greet", **fields)
    assert "Guest Greeted It took ann of roundsman, by " in page
    assert "1970-01-01T00:00:00Z 3 s" in page
    # What was done is noted where everything is noted that was done in the console.
    assert [json.loads(line)["command"] for line in journal] == ["greet"]
