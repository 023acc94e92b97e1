"""What `roundsman_testing.stack.deployment` promises of faults, time and functions' code."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from roundsman_dev.template import FunctionCode, Template, TemplateProblem
from roundsman_testing.faults import FunctionExits
from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.stack import MORNING, AwsFault, Clock, Killed, Stack
from roundsman_testing.stack.environment import new_session, taken_over
from roundsman_testing.stack.functions import Context, FunctionInstance
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project


@pytest.fixture(scope="module")
def one_stack() -> Iterator[Stack]:
    clock = Clock()
    with (
        RemoteServices(clock=clock.at_the_services) as services,
        deployed_project(services, clock, {"Engine.DueShards": "1"}) as stack,
    ):
        yield stack


@pytest.fixture
def stack(one_stack: Stack, session_without_real_aws: None) -> Stack:
    one_stack.start_over()
    return one_stack


def completed(stack: Stack) -> bool:
    task = stack.store.load("ord-1", stack.clock())
    return task is not None and task.state == "Completed"


def test_a_stack_leaves_no_session_behind_whose_credentials_are_fake() -> None:
    before = boto3.DEFAULT_SESSION
    with taken_over(Clock()):
        assert new_session() is boto3.DEFAULT_SESSION
    assert boto3.DEFAULT_SESSION is before


def test_all_sessions_have_aws_described_by_one_loader() -> None:
    with taken_over(Clock()):
        loaders = [new_session()._session.get_component("data_loader") for _ in range(2)]
    assert loaders[0] is loaders[1]


@pytest.mark.exhaustive
def test_a_function_that_dies_after_a_call_has_done_it(stack: Stack) -> None:
    stack.kill("SubmissionFunction", at="TransactWriteItems", done=True)
    stack.submit(order("ord-1"))
    stack.run()
    assert stack.task("ord-1").state == "Pending"
    assert "SendMessage" not in {call.operation for call in stack.calls}
    stack.pass_time_until(lambda: completed(stack), within=120)


def test_a_function_that_dies_before_a_call_has_not_done_it(stack: Stack) -> None:
    stack.kill("SubmissionFunction", at="TransactWriteItems")
    stack.submit(order("ord-1"))
    stack.run()
    assert stack.item("ord-1") == {}
    stack.pass_time(61)
    assert stack.effects("ord-1") == ALL_EFFECTS


@pytest.mark.parametrize("how", [AwsFault.BROKEN, AwsFault.THROTTLED, AwsFault.ANSWER_LOST])
def test_a_call_that_fails_in_one_try_is_mended_by_botocore_and_no_real_time_passes(
    stack: Stack, how: AwsFault
) -> None:
    stack.fail("SubmissionFunction", at="SendMessage", tries=1, how=how)
    stack.submit(order("ord-1"))
    stack.run()
    assert completed(stack)
    assert MORNING < stack.clock() < MORNING + 5_000, "botocore waited, on this clock"
    starts = [call for call in stack.calls if call.function == "SubmissionFunction"]
    assert [call.operation for call in starts].count("SendMessage") == 1, "one call, two tries"


def test_a_call_that_fails_in_all_tries_fails_its_batch_which_comes_again(stack: Stack) -> None:
    stack.fail("SubmissionFunction", at="SendMessage")
    stack.submit(order("ord-1"))
    stack.run()
    assert not completed(stack)
    assert stack.waiting("SubmissionQueue") == 1
    stack.pass_time(61)
    assert completed(stack)
    stack.assert_nothing_is_stuck()


def test_faults_are_raised_as_each_service_words_them(stack: Stack) -> None:
    stack.submit(order("ord-1"))
    for service, operation, code in (
        ("dynamodb", "ListTables", "ThrottlingException"),
        ("sqs", "ListQueues", "RequestThrottled"),
        ("sns", "ListTopics", "Throttling"),
    ):
        stack.fail("SubmissionFunction", at=operation, how=AwsFault.THROTTLED)
        client = boto3.client(service)  # type: ignore[call-overload]  # each in turn
        stack.aws.running = "SubmissionFunction"
        try:
            with pytest.raises(ClientError) as raised:
                client._make_api_call(operation, {})
        finally:
            stack.aws.running = ""
        assert raised.value.response["Error"]["Code"] == code
        client._make_api_call(operation, {})  # and moto answers again


@pytest.mark.parametrize(
    ("function", "operation", "why"),
    [
        (
            "SubmissionFunction",
            "TransactWriteItems",
            "storing the order ord-1: TransactionConflict",
        ),
        ("SchedulerFunction", "PutItem", "storing the task ord-1: TransactionConflictException"),
    ],
)
def test_a_write_in_conflict_is_tried_again_when_its_message_comes_again(
    stack: Stack, capsys: pytest.CaptureFixture[str], function: str, operation: str, why: str
) -> None:
    stack.fail(function, at=operation, how=AwsFault.IN_CONFLICT)
    stack.submit(order("ord-1"))
    stack.run()
    assert not completed(stack)
    assert f'"why":"{why}"' in capsys.readouterr().out
    stack.pass_time(400)  # also the message that was refused comes again
    assert completed(stack)
    stack.assert_nothing_is_stuck()
    assert stack.effects("ord-1") == ALL_EFFECTS


def test_an_answer_that_is_lost_in_all_tries_ends_as_a_closed_connection(stack: Stack) -> None:
    stack.fail("SubmissionFunction", at="CreateQueue", how=AwsFault.ANSWER_LOST)
    stack.aws.running = "SubmissionFunction"
    try:
        with pytest.raises(ConnectionClosedError):
            boto3.client("sqs").create_queue(QueueName="made-all-the-same")
    finally:
        stack.aws.running = ""
    assert stack.sqs.get_queue_url(QueueName="made-all-the-same")["QueueUrl"]


def test_a_function_that_the_template_does_not_have_is_refused_by_name(stack: Stack) -> None:
    with pytest.raises(ValueError, match=r"no function Payment, but .*PaymentFunction"):
        stack.kill("Payment", at="SendMessage")
    with pytest.raises(ValueError, match="no function Payment"):
        stack.invoke("Payment", {})


def test_what_does_not_come_about_in_time_fails(stack: Stack) -> None:
    with pytest.raises(AssertionError, match="within 100 seconds"):
        stack.pass_time_until(lambda: False, within=100)
    assert stack.clock() <= MORNING + 100_000


def test_a_stack_that_starts_over_is_as_new(stack: Stack) -> None:
    stack.submit(order("ord-1"))
    stack.pass_time(30)
    stack.send("SchedulerQueue", "{not json")
    stack.start_over()
    assert stack.clock() == MORNING
    assert stack.item("ord-1") == {}
    assert stack.effects("ord-1") == {}
    assert (stack.calls, stack.stuck()) == ([], {})
    stack.submit(order("ord-1"))
    stack.run()
    assert stack.effects("ord-1") == ALL_EFFECTS


# ---- code -----------------------------------------------------------------------------------


def function(folder: Path, name: str, text: str) -> FunctionInstance:
    code = folder / name
    code.mkdir()
    (code / "helper.py").write_text(f"NAME = {name!r}\n")
    (code / "app.py").write_text(textwrap.dedent(text))
    return FunctionInstance(name, FunctionCode(code, "app.handler"))


SAYS = """
    import helper

    def handler(event, context):
        import helper as later
        assert later is helper
        return helper.NAME
"""


def test_each_function_has_the_modules_of_its_own_folder(tmp_path: Path) -> None:
    one, two = function(tmp_path, "one", SAYS), function(tmp_path, "two", SAYS)
    answers = [each.call({}, Context()) for each in (one, two, one)]
    assert answers == ["one", "two", "one"]


def test_a_function_logs_by_its_own_stacks_level_whatever_an_earlier_one_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    says = """
        from roundsman.aws.observability import logger
        def handler(event, context):
            logger().info("heard")
        """
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "levels")
    for level in ("ERROR", "INFO"):
        monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)
        function(tmp_path, f"at_{level}", says).call({}, Context())
    assert capsys.readouterr().out.count("heard") == 1


def test_a_function_without_its_handler_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TemplateProblem, match=r"empty has no handler app\.handler"):
        function(tmp_path, "empty", "").call({}, Context())


def test_a_killed_process_is_no_exception_that_code_could_catch() -> None:
    assert not issubclass(Killed, Exception)


TEMPLATE = """
Resources:
  Worker:
    Type: AWS::Serverless::Function
    Properties:
      Handler: {handler}
      CodeUri: {code}
      Layers: [!Ref Shared]
  Shared:
    Type: AWS::Serverless::LayerVersion
    Properties:
      ContentUri: shared
"""


def written(folder: Path, handler: str = "app.handler", code: str = "worker") -> Template:
    (folder / "worker").mkdir()
    (folder / "shared" / "python").mkdir(parents=True)
    (folder / "template.yaml").write_text(TEMPLATE.format(handler=handler, code=code))
    return Template.read(folder / "template.yaml")


def test_code_and_layers_are_where_the_template_says(tmp_path: Path) -> None:
    code = written(tmp_path).functions()["Worker"]
    assert code.folder == tmp_path / "worker"
    assert code.layers == (tmp_path / "shared" / "python",), "as AWS puts it on the path"


def test_code_that_is_not_beside_the_template_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TemplateProblem, match="the code of Worker must be a folder"):
        written(tmp_path, code="s3://somewhere/else.zip").functions()


def test_a_handler_that_names_no_function_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TemplateProblem, match="Worker needs a Handler"):
        written(tmp_path, handler="app").functions()


def test_a_file_that_is_no_template_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TemplateProblem, match="there is no template at"):
        Template.read(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("[]")
    with pytest.raises(TemplateProblem, match="it has no Resources"):
        Template.read(tmp_path / "list.yaml")


def test_a_value_that_has_no_parameter_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TemplateProblem, match="has no parameter Typo"):
        written(tmp_path).parameter_values({"Typo": "1"})


def test_a_handler_that_ends_its_process_is_named(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr(FunctionInstance, "call", ends)
    with pytest.raises(
        FunctionExits,
        match=r"^SchedulerFunction: .*test_stack.py, line \d+, has called sys.exit\(3\)",
    ):
        stack.invoke("SchedulerFunction", {"Records": []})
