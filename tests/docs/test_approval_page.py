"""docs/how-to/ask-for-an-approval.md: its programs run as they are printed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from roundsman import StepRequest
from roundsman.agents.callbacks import callback_token
from roundsman.client import Client
from roundsman.model.events import Outcome
from roundsman.wire.messages import read_reply
from tests.support.agent_samples import request

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ask-for-an-approval.md"
AGENT, ANSWER, TEST = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_the_example_has_twenty_lines() -> None:
    assert len([line for line in AGENT.splitlines() if line]) <= 20


def test_the_example_asks_and_reminds_and_its_own_test_passes() -> None:
    sent: list[tuple[str, str, str]] = []

    def send_mail(subject: str, asked: StepRequest) -> None:
        sent.append((subject, asked.idempotency_key, asked.callback_token))

    names: dict[str, object] = {"send_mail": send_mail}
    for program in (AGENT, TEST):
        exec(program, names)  # noqa: S102  # our own page
    cast("Callable[[], None]", names["test_a_claim_is_reminded_of_and_approved"])()
    key = "ord-1/approve/perform"
    assert [(subject, name) for subject, name, _ in sent] == [
        ("Please approve", key),
        ("Reminder 1: please approve", f"{key}/reminder/1"),
        ("Reminder 2: please approve", f"{key}/reminder/2"),
    ]
    assert len({token for _, _, token in sent}) == 1


@pytest.mark.parametrize(
    ("approved", "outcome"), [(True, Outcome.SUCCEEDED), (False, Outcome.PERMANENT)]
)
def test_a_click_is_a_yes_or_a_no(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, *, approved: bool
) -> None:
    bodies: list[str] = []
    client = Client({})
    monkeypatch.setattr(client, "_reply", bodies.append)
    monkeypatch.setattr(Client, "of_stack", lambda _name: client)
    names: dict[str, object] = {}
    exec(ANSWER, names)  # noqa: S102  # our own page
    token = callback_token(request(), "payment")
    cast("Callable[..., None]", names["clicked"])(token, "ann", approved=approved)
    assert [read_reply(body).outcome for body in bodies] == [outcome]
