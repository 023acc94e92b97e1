"""Which AWS a command talks to, printed on standard error before it does anything."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from typer.testing import CliRunner

from roundsman_console.aws import stack as stacks
from roundsman_console.aws.local_record import Instances
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import StackNotFound
from roundsman_console.base.process import identify
from roundsman_console.faces.cli.target import announced_stack, find_stack, where
from roundsman_console.main import app
from tests.console.operators import document
from tests.console.verbs import STACK_VERBS, options_of, typed_example

SHOP = DeployedStack(
    "shop",
    {},
    {},
    arn="arn:aws:cloudformation:eu-central-1:111122223333:stack/shop/0a1b",
    endpoint="https://cloudformation.eu-central-1.amazonaws.com",
)
PLACE = "Stack shop in account 111122223333, eu-central-1"
CHANGES = [verb for verb in STACK_VERBS if options_of(verb) & {"--reason", "--yes", "--no-wait"}]
OF_THE_WHOLE = ["smoke", "stats", "watch"]
"""Verbs that change nothing by an option of theirs, and send an order or judge the whole stack."""


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The stack shop's project, without a profile."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "template.yaml").touch()
    (tmp_path / "samconfig.toml").write_text('[default.deploy.parameters]\nstack_name = "shop"\n')
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack that every name finds, and that nothing answers for; nobody waits for it."""
    monkeypatch.setattr(stacks, "find_stack", lambda *_: SHOP)
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))


def run_local_aws(*, stack: str = "shop", runs: bool = True) -> None:
    """A local AWS of this project is up, or has died."""
    instance, record = Instances(Path.cwd()).claim(4510)
    process = identify(os.getpid()) if runs else None
    instance.write(
        replace(record, stack=stack, region="us-east-1", emulator=process, deployed=True)
    )


def test_a_stack_is_in_an_account_and_a_region() -> None:
    assert where(SHOP) == PLACE


def test_the_profile_is_named_that_gives_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "prod")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    assert where(SHOP) == f"{PLACE} (profile prod)"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "these come first")
    assert where(SHOP) == PLACE


def test_a_stack_on_loopback_is_on_the_local_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "prod")
    local = replace(SHOP, endpoint="http://127.0.0.1:4510")
    assert where(local) == "Stack shop on the local AWS at http://127.0.0.1:4510"


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("verb", [*CHANGES, *OF_THE_WHOLE])
def test_a_command_that_changes_something_says_where(verb: str, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    result = CliRunner().invoke(app, typed_example(verb))
    assert result.stderr.startswith(f"{PLACE}\n"), result.output


@pytest.mark.usefixtures("shop")
def test_a_command_that_reads_an_order_says_nothing_of_it() -> None:
    assert PLACE not in CliRunner().invoke(app, ["show", "ord-1"]).stderr


@pytest.mark.usefixtures("operator")
def test_json_is_as_before() -> None:
    result = CliRunner().invoke(app, ["stats", "--json", "--stack", "roundsman"])
    assert "agents" in document(result)
    assert result.stderr.startswith("Stack roundsman in account 123456789012, us-east-1")


@pytest.mark.usefixtures("shop")
def test_a_local_aws_that_runs_unused_is_named_with_the_way_to_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_local_aws()
    find_stack(None)
    assert capsys.readouterr().err == (
        "A local AWS of this project runs at http://127.0.0.1:4510, and this command does not use "
        "it. To use it: export AWS_ENDPOINT_URL=http://127.0.0.1:4510 AWS_ACCESS_KEY_ID=test "
        "AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1\n"
    )
    announced_stack("shop")
    assert capsys.readouterr().err.endswith(f"us-east-1\n{PLACE}\n")


@pytest.mark.usefixtures("shop")
def test_the_way_to_it_names_a_stack_that_samconfig_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_local_aws(stack="another")
    find_stack(None)
    assert capsys.readouterr().err.endswith(" ROUNDSMAN_STACK=another\n")


def test_it_is_named_as_well_where_the_stack_is_not_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> DeployedStack:
        raise StackNotFound("There is no stack shop.")

    monkeypatch.setattr(stacks, "find_stack", refuse)
    run_local_aws()
    with pytest.raises(StackNotFound):
        announced_stack(None)
    assert capsys.readouterr().err.startswith("A local AWS of this project runs")


@pytest.mark.usefixtures("shop")
def test_it_is_not_named_where_it_is_not_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find_stack(None)
    assert not Path(".cache").exists()
    run_local_aws()
    find_stack("shop-prod")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4510")
    find_stack(None)
    assert not capsys.readouterr().err


PROFILES = """\
[profile local]
endpoint_url = http://127.0.0.1:4510
[profile service]
services = local
[services local]
cloudformation =
  endpoint_url = http://localhost:4510
[profile other]
endpoint_url = https://cloudformation.example
"""


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("environment", "is_used"),
    [
        ({"AWS_ENDPOINT_URL_CLOUDFORMATION": "http://127.0.0.1:4510"}, True),
        ({"AWS_PROFILE": "local"}, True),
        ({"AWS_PROFILE": "service"}, True),
        ({"AWS_PROFILE": "other"}, False),
        ({"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:4510"}, False),
        (
            {
                "AWS_ENDPOINT_URL": "http://127.0.0.1:4510",
                "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
            },
            False,
        ),
        ({"AWS_DEFAULT_REGION": ""}, False),
    ],
)
def test_whether_it_is_used_is_what_the_configuration_of_aws_says(
    environment: dict[str, str],
    is_used: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "config").write_text(PROFILES)
    for name, value in {"AWS_CONFIG_FILE": str(tmp_path / "config"), **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    run_local_aws()
    find_stack(None)
    assert (not capsys.readouterr().err) is is_used


@pytest.mark.usefixtures("shop")
def test_a_configuration_of_aws_that_cannot_be_read_is_left_to_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_local_aws()
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for name, value in (("AWS_PROFILE", "nobody"), ("AWS_ENDPOINT_URL", "nowhere")):
        monkeypatch.setenv(name, value)
        assert find_stack(None) is SHOP
        monkeypatch.delenv(name)
    assert not capsys.readouterr().err


@pytest.mark.usefixtures("shop")
def test_it_is_not_named_once_it_has_died(capsys: pytest.CaptureFixture[str]) -> None:
    run_local_aws(runs=False)
    find_stack(None)
    assert not capsys.readouterr().err


@pytest.mark.usefixtures("shop")
def test_a_folder_that_is_gone_ends_no_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_stack("shop") is SHOP
    assert capsys.readouterr().err == ""
