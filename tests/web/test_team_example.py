"""The example of a team's console: its command starts a console behind its load balancer."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import boto3
import pytest
import uvicorn
import yaml

from roundsman_console.faces.web.access.team import REQUIRED
from tests.console.operators import Operator
from tests.support.load_balancer import ISSUER, SIGNER

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "team_console" / "template.yaml"
VALUES: Mapping[str, str] = {
    "Stack": "roundsman",
    "LoadBalancer": SIGNER,
    "Issuer": ISSUER,
    "Group": "on-call",
    "GroupClaim": "groups",
    "NameClaim": "sub",
    "https://${Domain}": "https://console.example.com",
}


class Loader(yaml.SafeLoader):
    """Reads `!Ref X` and `!Sub X` as the value of X."""


def value_of(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> str:
    assert isinstance(node, yaml.ScalarNode)
    return VALUES.get(node.value, node.value)


def anything(*_: object) -> None:
    """Other functions of CloudFormation are not read."""


Loader.add_multi_constructor("!Ref", value_of)
Loader.add_multi_constructor("!Sub", value_of)
Loader.add_multi_constructor("!", anything)


def test_the_command_of_the_example_serves_a_team_on_the_port_of_its_container(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = yaml.load(EXAMPLE.read_text(), Loader)  # noqa: S506  # it is a SafeLoader
    resources = template["Resources"]
    [container] = resources["Task"]["Properties"]["ContainerDefinitions"]
    command = cast(list[str], container["Command"])
    assert {f"--{name.replace('_', '-')}" for name in REQUIRED} <= {*command}
    place = command.index("--serve") + 1
    host, _, port = command[place].rpartition(":")
    assert host == "0.0.0.0", "the load balancer is another machine"  # noqa: S104  # not bound
    target = resources["TargetGroup"]["Properties"]
    assert int(port) == container["PortMappings"][0]["ContainerPort"] == target["Port"]
    command[place] = "127.0.0.1:0"
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.DEFAULT_SESSION)  # it is put back
    ran: list[str] = []

    def run(_: uvicorn.Server, sockets: list[socket.socket]) -> None:
        ran.extend(one.getsockname()[0] for one in sockets)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    result = operator.types("ui", *command)
    assert "The console of roundsman for the team: https://console.example.com" in result.stdout
    assert ran == ["127.0.0.1"]
