"""The stand-ins of a local AWS: they start and end with it, unless the services are elsewhere."""

import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from roundsman_console.aws.local_record import Instances
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProcessIdentity, wait_until
from roundsman_dev.local import LocalAws, stand_ins
from roundsman_dev.local.command import up_lines
from roundsman_dev.local.stand_ins import stand_ins_url
from roundsman_dev.local.update import deploy
from roundsman_testing.remote_services.server import DEFAULT_PORT
from tests.console.local_tools import Tools, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = make_project(tmp_path)
    agent = made / "functions" / "agents" / "fraud" / "app.py"
    agent.parent.mkdir(parents=True)
    agent.touch()
    return made


@pytest.fixture(autouse=True)
def free_usual_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The usual port is one that no other program of this machine uses."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    monkeypatch.setattr(stand_ins, "DEFAULT_PORT", port)
    return port


def up(project: Path, **options: object) -> LocalAws:
    return LocalAws.up(port=0, project=project, runner=Tools(), **options)  # type: ignore[arg-type]


def process_of(local: LocalAws) -> ProcessIdentity:
    found = local.record.stand_ins
    assert found is not None
    return found


def has_ended(process: ProcessIdentity) -> bool:
    return wait_until(lambda: not process.is_alive(), 10)


def test_the_services_of_all_agents_are_there_until_the_local_aws_goes_down(
    project: Path, free_usual_port: int
) -> None:
    with up(project) as local:
        url = f"http://127.0.0.1:{free_usual_port}"
        assert set(local.services.values()) == {url}
        with urlopen(f"{url}/_ledger") as answer:
            assert answer.status == 200
        order = json.dumps({"orderId": "ord-1"}).encode()
        call = Request(f"{url}/fraud", order, {"Idempotency-Key": "k"})  # this application's agent
        with urlopen(call) as answer:
            assert answer.status == 201
        assert Instances(project).at(local.record.port).read() == local.record
        lines = up_lines(local, local.stack)
        assert any(f"{url}/_ledger" in line for line in lines)
        assert not any("No service answers" in line for line in lines)
    assert has_ended(process_of(local))  # its port may be another program's by now


def test_none_start_where_the_services_are_named(project: Path, free_usual_port: int) -> None:
    usual = f"http://127.0.0.1:{free_usual_port}"
    with up(project, services=usual) as local:
        assert local.record.stand_ins is None
        assert local.services["mail"] == usual
    named = dict.fromkeys(("InventoryUrl", "PaymentUrl", "ShippingUrl", "MailUrl"), "https://a")
    with up(project, parameters=named) as local:
        assert local.record.stand_ins is None


@pytest.mark.exhaustive
def test_they_take_a_free_port_where_the_usual_one_is_in_use(
    project: Path, free_usual_port: int
) -> None:
    with socket.create_server(("127.0.0.1", free_usual_port)), up(project) as local:
        assert local.services["mail"] == local.record.stand_ins_url
        assert not local.services["mail"].endswith(f":{free_usual_port}")
        with urlopen(f"{local.services['mail']}/_ledger") as answer:
            assert answer.status == 200


@pytest.mark.exhaustive
def test_an_update_keeps_them_and_starts_those_that_have_ended(project: Path) -> None:
    with up(project) as local:
        instance = Instances(project).at(local.record.port)
        kept = deploy(project, instance, runner=Tools())
        assert (kept.stand_ins, kept.services) == (local.record.stand_ins, local.services)
        os.kill(process_of(local).pid, signal.SIGKILL)
        assert has_ended(process_of(local))
        again = deploy(project, instance, runner=Tools())
        assert again.stand_ins not in (None, kept.stand_ins)
        with urlopen(f"{again.services['mail']}/_ledger") as answer:
            assert answer.status == 200
    assert again.stand_ins is not None
    assert has_ended(again.stand_ins)


@pytest.mark.exhaustive
def test_they_end_although_the_record_of_them_is_lost(project: Path) -> None:
    local = up(project)
    instance = Instances(project).at(local.record.port)
    instance.write(replace(local.record, stand_ins=None))
    local.down()
    assert has_ended(process_of(local))


def test_those_that_do_not_start_are_one_sentence_and_nothing_is_left(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand_ins, "LAUNCH", "raise SystemExit('error: no room left')")
    with pytest.raises(ConsoleError, match=r"stand-ins of the services did not start: .*no room"):
        up(project)
    assert list(Instances(project)) == []


def test_the_usual_port_is_that_of_roundsman_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "DEFAULT_PORT", DEFAULT_PORT)
    monkeypatch.setattr(stand_ins, "check_port", lambda port: None)
    assert stand_ins_url() == f"http://127.0.0.1:{DEFAULT_PORT}"
