"""The commands of the README do what it says.

The world stands in for the local AWS, and the test's server for the stand-ins of the services.
"""

import json
import re
import shlex
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from roundsman_console.base import clock
from roundsman_console.main import app
from roundsman_testing import World
from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.world.aws import WorldAws

PROJECT = Path(__file__).parents[1]
PAGE = (PROJECT / "README.md").read_text(encoding="utf-8")
TYPED: list[str] = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    for line in block.splitlines()
    if line.startswith(("roundsman ", "curl "))
]
[SAID] = re.findall(r"the officer is asked \(`(.*?)`\)", PAGE)


class Waiting:
    """In the place of the module `time` where a command waits: the world goes on meanwhile."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic(self) -> float:
        return self._world.now / 1000

    def sleep(self, seconds: float) -> None:
        self._world.run(for_=timedelta(seconds=seconds))


@pytest.fixture
def reader(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world, in the place of AWS."""
    monkeypatch.chdir(PROJECT)
    monkeypatch.setattr("roundsman_testing.world.aws.NAME", "tenant-onboarding")
    monkeypatch.setattr("roundsman.aws.clock.now", lambda: world.now)
    monkeypatch.setattr(clock, "time", Waiting(world))
    with WorldAws(world).in_use():
        yield world


def types(line: str) -> str:
    """What a command prints, which must go well."""
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    return done.stdout


def command(begin: str) -> str:
    [found] = [line for line in TYPED if line.startswith(begin)]
    return found


def token(services: RemoteServices, order_id: str) -> str:
    """The token of the review, as the page lets the compliance service be asked for it."""
    address = shlex.split(command("curl ").replace("=business", f"={order_id}"))[1]
    with urlopen(address.replace("http://127.0.0.1:8780", services.url)) as answer:  # noqa: S310
        found = json.load(answer)
    return str(re.findall(r'"token": "([^"]+)"', json.dumps(found))[-1])


def test_an_approved_tenant_is_onboarded_by_the_commands_of_the_page(
    reader: World, roundsman_services: RemoteServices
) -> None:
    types(command("roundsman submit"))
    reader.run(until=lambda: reader.waits_for_answer("business", "approve_tenant"))
    reader.run(for_=timedelta(minutes=1))
    assert SAID in types(command("roundsman show"))
    approved = command("roundsman answer TOKEN --result")
    types(approved.replace("TOKEN", token(roundsman_services, "business")))
    reader.run()
    assert types("roundsman show business").startswith("business  tenant_onboarding  Completed\n")


def test_a_declined_tenant_is_undone_by_the_commands_of_the_page(
    reader: World, roundsman_services: RemoteServices, tmp_path: Path
) -> None:
    event = json.loads((PROJECT / "events" / "business.json").read_text(encoding="utf-8"))
    other = tmp_path / "declined.json"
    other.write_text(json.dumps({**event, "orderId": "declined"}), encoding="utf-8")
    types(f"roundsman submit {other}")
    reader.run(until=lambda: reader.waits_for_answer("declined", "approve_tenant"))
    reader.run(for_=timedelta(minutes=1))
    declined = command("roundsman answer TOKEN --failed")
    types(declined.replace("TOKEN", token(roundsman_services, "declined")))
    reader.run()
    assert types("roundsman show declined").startswith("declined  tenant_onboarding  Undone\n")


def test_the_invalid_event_is_rejected_with_each_of_its_problems(reader: World) -> None:
    invalid = (PROJECT / "events" / "invalid.json").read_text(encoding="utf-8")
    reader.send(invalid)
    reader.run()
    listed = types("roundsman rejected ls --json")
    for path in ("country", "subdomain", "users[0].email", "users[0].role"):
        assert f'"{path}"' in listed


def test_each_command_of_the_page_is_run_here() -> None:
    run = ("roundsman submit", "roundsman show", "curl ", "roundsman answer TOKEN --")
    others = [line for line in TYPED if not line.startswith(run)]
    assert others == ["roundsman local up"], "`make deployed` runs it"
