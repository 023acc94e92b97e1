"""docs/how-to/poll-an-outside-job.md: its programs run as they are printed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from roundsman import Agent, NotYet
from roundsman.model.events import Outcome
from tests.support.agent_samples import Clock, reply, request

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "poll-an-outside-job.md"
AGENT, TEST = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


class Service:
    """Stands in for the service of the page."""

    state = "running"

    def job(self, *, key: str, file: object) -> dict[str, object]:
        return {"state": self.state, "file": f"{file}.pdf", "key": key}


def names_of_the_page() -> dict[str, object]:
    names: dict[str, object] = {"service": Service()}
    for program in (AGENT, TEST):
        exec(program, names)  # noqa: S102  # our own page
    return names


@pytest.mark.exhaustive
def test_its_own_tests_pass() -> None:
    names = names_of_the_page()
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        cast("Callable[[], None]", names[name])()


def test_its_function_polls_until_the_job_is_done() -> None:
    names = names_of_the_page()
    agent = names["converter"]
    assert isinstance(agent, Agent)
    asked = request(step="convert", input={"file": "raw"})
    assert reply(agent, Clock(), asked).outcome is Outcome.POLLING
    cast("Service", names["service"]).state = "done"
    answer = reply(agent, Clock(), asked)
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"file": "raw.pdf"})


def test_the_name_that_it_imports_is_the_public_one() -> None:
    assert names_of_the_page()["NotYet"] is NotYet
