"""`roundsman prove`: it asks first, removes all that it made, and names what is left."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base import clock
from roundsman_console.base.errors import ConsoleError, InspectorError
from roundsman_console.main import app
from roundsman_dev.prove import command, run
from roundsman_dev.prove.deployment import TAG, Place, ProofProject
from roundsman_dev.prove.document import ProofDocument
from roundsman_dev.prove.reading import Numbers
from roundsman_dev.prove.removal import (
    ProofRecord,
    proofs_left,
    read_record,
    remove,
    wait_for_update,
)
from roundsman_dev.prove.run import Proof, new_run, send_events
from roundsman_dev.prove.stored_lines import lines_of
from tests.console.schemas import assert_schema
from tests.support.proof_on_moto import RUN, proof_on_moto
from tests.unit.console.prove.sound import FILE, sound

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient

REGION, ACCOUNT = "us-east-1", "123456789012"
HERE = Place(ACCOUNT, REGION, local=True)


def ignore(_: str) -> None:
    """No progress is shown."""


# --- Removing -----------------------------------------------------------------------------------


def template(table: str, *, policy: str = "Retain") -> str:
    return json.dumps(
        {
            "Resources": {
                "TasksTable": {
                    "Type": "AWS::DynamoDB::Table",
                    "DeletionPolicy": policy,
                    "Properties": {
                        "TableName": table,
                        "BillingMode": "PAY_PER_REQUEST",
                        "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "S"}],
                        "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
                    },
                }
            }
        }
    )


class Account:
    """An account on moto, with stacks that have a table which stays when they are deleted."""

    def __init__(self) -> None:
        self.stacks: CloudFormationClient = boto3.client("cloudformation", region_name=REGION)
        self.dynamodb: DynamoDBClient = boto3.client("dynamodb", region_name=REGION)

    def make(self, name: str, tag: str | None = None) -> None:
        self.stacks.create_stack(
            StackName=name,
            TemplateBody=template(f"{name}-TasksTable"),
            Tags=[] if tag is None else [{"Key": TAG, "Value": tag}],
        )

    @property
    def names(self) -> set[str]:
        return {one["StackName"] for one in self.stacks.describe_stacks()["Stacks"]}

    @property
    def tables(self) -> list[str]:
        return self.dynamodb.list_tables()["TableNames"]


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        yield Account()


def record(name: str = RUN, **changes: object) -> ProofRecord:
    return replace(ProofRecord(name, ACCOUNT, REGION), **changes)  # type: ignore[arg-type]


def test_a_proof_is_removed_with_its_tables_and_nothing_beside_it(account: Account) -> None:
    account.make(RUN, tag=RUN)
    account.make("shop")
    account.make(f"{RUN}-shop")  # somebody's stack, whose name begins alike
    assert remove(record(), ignore) == []
    assert account.names == {"shop", f"{RUN}-shop"}
    assert set(account.tables) == {f"{RUN}-shop-TasksTable", "shop-TasksTable"}


def test_a_table_is_removed_if_the_stack_is_gone_already(account: Account) -> None:
    account.make(RUN, tag=RUN)
    before = record(tables=[f"{RUN}-TasksTable"])
    account.stacks.delete_stack(StackName=RUN)
    assert remove(before, ignore) == []
    assert account.tables == []


def test_removing_again_removes_nothing_and_is_no_error(account: Account) -> None:
    assert remove(record(tables=[f"{RUN}-TasksTable"]), ignore) == []


def test_a_stack_without_the_tag_is_not_removed_and_is_named(account: Account) -> None:
    account.make(RUN)
    [left] = remove(record(), ignore)
    assert "does not have the tag" in left
    assert account.names == {RUN}


def test_what_cannot_be_removed_is_named_with_the_reason(account: Account) -> None:
    account.make(RUN, tag=RUN)
    table = f"{RUN}-TasksTable"
    account.dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
    [left] = remove(record(), ignore)
    assert table in left
    assert account.tables == [table]


class Updating:
    """CloudFormation, whose stack has these statuses one after the other."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)
        self.cancelled = 0

    def describe_stacks(self, StackName: str) -> object:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {"Stacks": [{"StackName": StackName, "StackStatus": status}]}

    def cancel_update_stack(self, StackName: str) -> None:
        self.cancelled += 1


@pytest.mark.parametrize(
    ("statuses", "cancelled", "waits"),
    [
        (("UPDATE_COMPLETE",), 0, 0),
        (("CREATE_IN_PROGRESS",), 0, 0),  # a creation may be deleted while it is under way
        (("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"), 1, 2),
        (("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE"), 0, 1),
    ],
)
def test_an_update_that_is_under_way_is_ended_before_the_stack_is_deleted(
    statuses: tuple[str, ...], cancelled: int, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(clock, "pause", paused.append)
    client = Updating(*statuses)
    wait_for_update(client, "arn")  # type: ignore[arg-type]  # it has what is called
    assert (client.cancelled, len(paused)) == (cancelled, waits)


def test_proofs_are_found_by_their_records_and_by_their_tags(
    account: Account, tmp_path: Path
) -> None:
    account.make("prove-aaaaaa", tag="prove-aaaaaa")
    account.make("prove-bbbbbb")  # without the tag
    account.make("shop", tag="shop")  # with another name
    account.make("prove-cccccc", tag="prove-aaaaaa")  # with the tag of another
    record("prove-dddddd").write(tmp_path / "prove-dddddd")
    record("prove-eeeeee", region="eu-west-1").write(tmp_path / "prove-eeeeee")
    found = proofs_left(tmp_path, ACCOUNT, REGION)
    assert {(one.run, folder) for one, folder in found} == {
        ("prove-aaaaaa", None),
        ("prove-dddddd", tmp_path / "prove-dddddd"),
    }


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = record(tables=[f"{RUN}-TasksTable"], arn="arn:aws:cloudformation:::stack/x")
    written.write(tmp_path)
    assert read_record(tmp_path / "record.json") == written


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"run": "shop", "account": "1", "region": "r"}',
        '{"run": "prove-1a2b3c", "account": "1", "region": "r", "tables": ["shop-TasksTable"]}',
        '{"run": "prove-1a2b3c", "account": "1", "region": "r", "other": 1}',
        '{"run": "prove-1a2b3c", "account": 1, "region": "r"}',
    ],
)
def test_a_record_that_names_something_else_is_refused(tmp_path: Path, text: str) -> None:
    """Its names are deleted, so that they must be those of a proof."""
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConsoleError, match="not the record of a proof"):
        read_record(path)


def test_every_proof_has_a_name_of_its_own_that_can_be_removed(tmp_path: Path) -> None:
    assert new_run() != new_run()
    record(new_run()).write(tmp_path)
    read_record(tmp_path / "record.json")


# --- The course ---------------------------------------------------------------------------------


class NotDeployed(ProofProject):
    """A project whose stack is there already."""

    def write(self) -> None:
        return

    def deploy(self) -> None:
        return


@pytest.mark.exhaustive
def test_the_course_sends_some_orders_twice_and_waits_for_their_ends_as_long_as_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proof_on_moto(tmp_path) as found:
        stack = DeployedStack(RUN, dict(found.stack.stack.outputs), {"DueShards": "4"})
        monkeypatch.setattr(run, "find_stack", lambda _: stack)
        monkeypatch.setattr(run, "note_resources", lambda _: None)
        monkeypatch.setattr(run, "FAULTS", ())
        monkeypatch.setattr(clock, "pause", found.stack.pass_time)
        monkeypatch.setattr(clock, "moment", lambda: found.clock() / 1_000)
        lines: list[str] = []
        project = NotDeployed(run=RUN, folder=tmp_path, place=HERE, progress=ignore)
        proof = Proof(project=project, record=record(), orders=2, within=600, progress=lines.append)
        document = proof.course()
        early = replace(proof, within=0, orders=3, sent=[], faults=[]).course()
    assert document.circumstances.finished
    assert not early.circumstances.finished, "its third order could not end in no time"
    assert [(one.order_id, one.copies) for one in document.sent] == [
        (f"{RUN}-000000", 2),
        (f"{RUN}-000001", 1),
    ]
    assert {str(one.task.state) for one in document.orders} == {"Completed", "Undone"}
    assert any("2 of 2 orders stored, 2 ended" in line for line in lines)


@pytest.mark.parametrize("ends", [True, False])
def test_no_more_orders_are_open_than_may_be(
    ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If none ends, no more are sent, until the time is over."""
    project = NotDeployed(run=RUN, folder=tmp_path, place=HERE, progress=ignore)
    proof = Proof(project=project, record=record(), orders=60, within=600, progress=ignore)
    open_now: list[int] = []
    paused: list[float] = []

    def count(*_: object, **__: object) -> Numbers:
        last = len(proof.sent) == 60
        ended = len(proof.sent) - (0 if last else 10) if ends and paused else 0
        return Numbers(len(proof.sent), ended)

    monkeypatch.setattr(run, "OPEN", 30)
    monkeypatch.setattr(run, "FAULTS", ())
    monkeypatch.setattr(run, "find_stack", lambda _: DeployedStack(RUN, {}, {}))
    monkeypatch.setattr(run, "note_resources", lambda _: None)
    monkeypatch.setattr(run, "read_numbers", count)
    monkeypatch.setattr(run, "read_queues", lambda _: [])
    monkeypatch.setattr(run, "read_spent", lambda *_: ([], ""))
    monkeypatch.setattr(run, "read_document", lambda *_: sound())
    monkeypatch.setattr(
        run, "send_events", lambda *_: open_now.append(len(proof.sent) - proof.ended)
    )
    monkeypatch.setattr(clock, "pause", paused.append)
    monkeypatch.setattr(clock, "moment", lambda: sum(paused))
    proof.course()
    assert max(open_now) == 30
    assert len(proof.sent) == (60 if ends else 30)
    assert sum(paused) < 600 if ends else sum(paused) >= 600


class Refusing:
    """SQS, which takes the last event of a call only when it is sent alone."""

    def __init__(self, never: bool = False) -> None:
        self.taken: list[str] = []
        self.never = never

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> object:
        takes = Entries[:-1] if self.never or len(Entries) > 1 else Entries
        self.taken += [one["MessageBody"] for one in takes]
        return {"Failed": [{"Id": one["Id"]} for one in Entries[len(takes) :]]}


def sent_to(sqs: Refusing) -> DeployedStack:
    stack = DeployedStack(RUN, {"SubmissionQueueUrl": "https://queue.test/q"}, {})
    stack.__dict__["sqs"] = sqs
    return stack


def test_an_event_that_is_not_taken_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "pause", lambda _: None)
    sqs = Refusing()
    send_events(sent_to(sqs), ["a", "b", "c"])
    assert sorted(sqs.taken) == ["a", "b", "c"]


def test_an_event_that_is_never_taken_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "pause", lambda _: None)
    with pytest.raises(InspectorError, match="did not take 1"):
        send_events(sent_to(Refusing(never=True)), ["a"])


# --- The command --------------------------------------------------------------------------------


@pytest.fixture
def removals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of the proofs that are removed. Everything that calls AWS is left out."""
    found: list[str] = []

    def removed(one: ProofRecord, _: Callable[[str], None]) -> list[str]:
        found.append(one.run)
        return []

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "remove", removed)
    monkeypatch.setattr(command, "place", lambda: HERE)
    monkeypatch.setattr(Proof, "course", lambda _: sound())
    return found


def prove(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["prove", *arguments])


def test_nothing_is_made_before_somebody_has_agreed(removals: list[str], tmp_path: Path) -> None:
    result = prove()
    assert result.exit_code == 2
    assert "Nothing was made." in result.stderr
    assert "lambda:PutFunctionConcurrency" in result.stdout
    assert (removals, list(tmp_path.iterdir())) == ([], [])


def test_a_proof_that_is_kept_leaves_its_report_and_nothing_else(
    removals: list[str], tmp_path: Path
) -> None:
    result = prove("--yes")
    assert result.exit_code == 0, result.output
    [folder] = tmp_path.iterdir()
    assert removals == [folder.name]
    assert {one.name for one in folder.iterdir()} == {"report.json", "report.txt", "seen.jsonl"}
    assert "Every promise that could be judged was kept." in result.stdout


def test_a_broken_promise_is_an_exit_of_one(
    removals: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = replace(sound(), orders=sound().orders[1:])
    monkeypatch.setattr(Proof, "course", lambda _: lost)
    result = prove("--yes")
    assert result.exit_code == 1
    assert f"broken: ACCEPTED, {sound().sent[0].order_id}" in result.stdout
    assert len(removals) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (ConsoleError("sam deploy failed: no right"), 1)],
    ids=["Ctrl-C", "a failure"],
)
def test_everything_is_removed_after(
    error: BaseException,
    code: int,
    removals: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def course(_: Proof) -> ProofDocument:
        raise error

    monkeypatch.setattr(Proof, "course", course)
    assert prove("--yes").exit_code == code
    [folder] = tmp_path.iterdir()
    assert removals == [folder.name]
    assert not (folder / "record.json").exists()


def test_what_is_left_is_named_and_its_record_stays(
    removals: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "remove", lambda *_: ["the table x: it is protected"])
    result = prove("--yes")
    assert result.exit_code == 1
    assert "Left behind: the table x: it is protected" in result.stderr
    assert "roundsman prove --clean-up" in result.stderr
    [folder] = tmp_path.iterdir()
    assert read_record(folder / "record.json").run == folder.name


def test_json_is_one_object_on_standard_output(removals: list[str]) -> None:
    found = json.loads(prove("--yes", "--json").stdout)
    assert_schema("prove", found)
    assert found["verdict"] == "kept"


def test_a_file_is_judged_again_without_aws(removals: list[str]) -> None:
    result = prove("--from", str(FILE), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["sent"] == 25
    assert removals == []


def test_a_file_of_a_broken_proof_is_an_exit_of_one(removals: list[str], tmp_path: Path) -> None:
    path = tmp_path / "seen.jsonl"
    path.write_text("".join(lines_of(replace(sound(), orders=[]))), encoding="utf-8")
    assert prove("--from", str(path)).exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", "seen.jsonl", "--orders", "3"),
        ("--from", "seen.jsonl", "--clean-up"),
        ("--clean-up", "--json"),
        ("--from", "no-such-file.jsonl"),
        ("--orders", "0"),
        ("--within", "1000"),
    ],
)
def test_a_wrong_use_is_said_in_a_sentence(arguments: tuple[str, ...], removals: list[str]) -> None:
    result = prove(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_clean_up_asks_and_removes_what_is_left(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "place", lambda: HERE)
    account.make(RUN, tag=RUN)
    refused = prove("--clean-up")
    assert (refused.exit_code, account.names) == (2, {RUN})
    assert RUN in refused.stdout
    assert prove("--clean-up", "--yes").exit_code == 0
    assert account.tables == []
    assert "No proof has left anything" in prove("--clean-up", "--yes").stdout
