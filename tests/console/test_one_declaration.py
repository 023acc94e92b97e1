"""A verb that is declared, and nothing else of it, is in every place where people look for it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from roundsman_console.acts import verbs
from roundsman_console.acts.verb import Argument, Asked, Preview, StackVerb
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base.result import EPOCH_MS, MS, Result, Shown
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.form_registry import commands
from roundsman_console.faces.web.one_browser import BrowserSession
from roundsman_console.inspector import Inspector
from roundsman_console.main import app
from tests.console.operators import Operator
from tests.web.browsers import PORT, Browser
from tools import reference
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


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "VERBS", (*verbs.VERBS, GreetVerb))


@pytest.fixture
def browser(operator: Operator) -> Iterator[Browser]:
    session = BrowserSession(PORT)
    inspector = Inspector(find_stack(None))
    with TestClient(application(inspector, session), base_url=session.address) as client:
        client.get(session.link_to())
        yield Browser(client, session, operator, inspector)


def types(*words: str) -> str:
    result = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["greet", *words])
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


def test_it_is_in_the_reference() -> None:
    block = reference.commands()
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
