"""Every verb where AWS cannot be asked, or says no: one sentence, the right code, no traceback.

AWS is played by a server that gives every call one answer, so that botocore's own reading and
repeating of answers runs. The verbs and what is typed at them come from the app and its help.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner, Result

from roundsman_console.faces.cli.errors import EXIT_CODES
from roundsman_console.main import app
from tests.console.operators import Operator, at_each_call, without_place
from tests.console.verbs import STACK_VERBS, typed_example


@dataclass
class OneAnswer:
    """What the server says to every call, and how often it was asked."""

    status: int = 200
    body: str = ""
    calls: int = 0

    def page(self, content: str) -> None:
        self.status, self.body = 200, content

    def error(self, code: str, message: str = "no", status: int = 400) -> None:
        self.status = status
        self.body = (
            "<ErrorResponse><Error><Type>Sender</Type>"
            f"<Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        )

    def stack(self, status: str, **outputs: str) -> None:
        listed = "".join(
            f"<member><OutputKey>{name}</OutputKey><OutputValue>{value}</OutputValue></member>"
            for name, value in outputs.items()
        )
        self.status = 200
        self.body = (
            "<DescribeStacksResponse><DescribeStacksResult><Stacks><member>"
            "<StackName>roundsman</StackName><CreationTime>2027-01-15T08:00:00Z</CreationTime>"
            "<StackId>arn:aws:cloudformation:us-east-1:1:stack/roundsman/0a</StackId>"
            f"<StackStatus>{status}</StackStatus><Outputs>{listed}</Outputs>"
            "</member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
        )


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, examples_folder: Path) -> Iterator[OneAnswer]:
    """All of AWS, as one answer."""
    answer = OneAnswer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer.calls += 1
            content = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # It looks this often, in seconds, whether it is to end: half a second by default.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    yield answer
    server.shutdown()
    server.server_close()


def types(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, words)


def sentence_of(result: Result, verb: str) -> str:
    """The one sentence on standard error. Nothing else may be printed."""
    assert isinstance(result.exception, SystemExit), (verb, result.exception, result.output)
    assert (result.exit_code, result.stdout) == (1, ""), (verb, result.output)
    message = without_place(result.stderr)
    assert message.count("\n") == 1, (verb, result.stderr)
    assert "\x1b" not in message, verb
    return message


TROUBLES: dict[str, tuple[Callable[[OneAnswer], None], str]] = {
    "no such stack": (
        lambda aws: aws.error("ValidationError", "Stack with id roundsman does not exist"),
        "There is no stack roundsman in this account and region us-east-1. Deploy it",
    ),
    "expired credentials": (
        lambda aws: aws.error("ExpiredToken", status=403),
        "The AWS credentials have expired. Sign in again.",
    ),
    "a clock that is wrong": (
        lambda aws: aws.error("SignatureDoesNotMatch", "Signature expired: 10:00 is over", 403),
        "The clock of this machine differs from that of AWS. Set it (Signature expired: 10:00 is",
    ),
    "no right to find the stack": (
        lambda aws: aws.error("AccessDenied", "\u202enot you[red]", 403),
        "AWS refused DescribeStacks with these credentials: ?not you[red]",
    ),
    "another system's stack": (
        lambda aws: aws.stack("CREATE_COMPLETE", BucketName="photos"),
        "The stack roundsman has no output TasksTableName. Check that it is a Roundsman stack.",
    ),
    "a stack that is being created": (
        lambda aws: aws.stack("CREATE_IN_PROGRESS"),
        "The stack roundsman is CREATE_IN_PROGRESS. Wait until the deployment is done.",
    ),
    "a stack that was rolled back": (
        lambda aws: aws.stack("ROLLBACK_COMPLETE"),
        "The stack roundsman is ROLLBACK_COMPLETE: it was never deployed. Read the reason in "
        "its events, then deploy it again.",
    ),
    "a stack that is being deleted": (
        lambda aws: aws.stack("DELETE_IN_PROGRESS"),
        "The stack roundsman is DELETE_IN_PROGRESS: it is being deleted.",
    ),
    "a sign-in page in between": (
        lambda aws: aws.page("<!doctype html><title>Sign in"),
        "The answer does not come from AWS",
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_verb_can_do_without_a_stack_and_says_why(aws: OneAnswer, trouble: str) -> None:
    happens, sentence = TROUBLES[trouble]
    happens(aws)
    # All verbs find the stack in one way: that each does is tried with the first of the troubles.
    verbs = STACK_VERBS if trouble == "no such stack" else ["agents"]
    for verb in verbs:
        assert sentence in sentence_of(types(*typed_example(verb)), verb), verb


@pytest.mark.exhaustive
def test_a_throttled_call_is_made_again_before_it_is_reported(
    aws: OneAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    aws.error("Throttling", "Rate exceeded")
    assert sentence_of(types("agents", "--stack", "roundsman"), "agents") == (
        "AWS is throttling DescribeStacks. Try again in a moment.\n"
    )
    assert aws.calls == 2


@pytest.mark.exhaustive
def test_without_a_network_each_verb_says_so(
    aws: OneAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for verb in STACK_VERBS:
        message = sentence_of(types(*typed_example(verb)), verb)
        assert "Check the network and AWS_ENDPOINT_URL." in message, verb


def refuse(**_rest: object) -> None:
    """AccessDeniedException"""
    message = "User: arn:aws:iam::1:user/amy is not authorized"
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, "ThatCall")


def throttle(**_rest: object) -> None:
    """ThrottlingException"""
    raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "ThatCall")


PARTIAL = {"alerts", "doctor", "export", "shift"}
"""Verbs that print what they could read, and what they could not."""

ELSEWHERE = ("delete", "restore prepare", "restore replace", "restore start", "rollback")
"""Verbs that ask CloudFormation and Lambda first, and then for the name of the stack."""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (refuse, "AWS refused ThatCall with these credentials: User: arn:aws:iam::1:user/amy is"),
        pytest.param(
            throttle,
            "AWS is throttling ThatCall. Try again in a moment",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_where_the_tables_and_queues_say_no_each_verb_names_the_call(
    operator: Operator,
    examples_folder: Path,
    answer: Callable[..., None],
    message: str,
) -> None:
    with (
        at_each_call("dynamodb", answer),
        at_each_call("sqs", answer),
        at_each_call("sns", answer),
    ):
        for verb in (verb for verb in STACK_VERBS if verb not in ELSEWHERE):
            result = types(*typed_example(verb))
            if verb in PARTIAL:
                assert result.exit_code == 1, verb
                assert str(result.output).count(answer.__doc__ or "") > 0, verb
            else:
                assert message in sentence_of(result, verb), verb


def test_the_page_lists_the_exit_codes() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "reference" / "cli.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |\n" in page
