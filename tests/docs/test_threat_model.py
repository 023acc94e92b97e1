"""The tables of the threat model follow the templates: another right or refusal is another table.

That the page has these tables is checked with the other generated blocks (`test_reference.py`).
"""

from collections.abc import Callable

import pytest

from roundsman_dev.nested_stacks import copied
from roundsman_dev.template import Document, Json, mapping_of
from tests.template.conftest import nested_template
from tests.template.faults import arn, put, ref, sub
from tools.template_rights import defaults, rights_of_people, rights_of_roles, senders

Stacks = tuple[Document, Document]
SENDERS = "SchedulerQueuePolicy/PolicyDocument/Statement"
ACCOUNT = "every principal of the account"


@pytest.fixture
def stacks() -> Stacks:
    """The templates of the engine and of an agent, which a test may change."""
    engine, agent = nested_template("engine.yaml"), nested_template("agent.yaml")
    return mapping_of(copied(engine)), mapping_of(copied(agent))


def row(table: str, name: str) -> list[str]:
    """The cells after the first of the row that begins with this name."""
    [found] = [line for line in table.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in found.split("|")[2:-1]]


def allow(stacks: Stacks, role: str, action: str, resource: Json, **more: Json) -> None:
    """Add a statement to a role of the engine or, if there is none of that name, of the agent."""
    for template in stacks:
        policy = mapping_of(template["Resources"]).get(role)
        if policy is not None:
            document = mapping_of(mapping_of(policy)["Properties"])["Policies"]
            assert isinstance(document, list)
            found = mapping_of(mapping_of(document[0])["PolicyDocument"])["Statement"]
            assert isinstance(found, list)
            found.append({"Effect": "Allow", "Action": action, "Resource": resource, **more})
            return
    raise AssertionError(f"there is no role {role}")


def test_every_queue_of_both_stacks_has_a_row(stacks: Stacks) -> None:
    for template, prefix in zip(stacks, ("", "<Agent>"), strict=True):
        for name, resource in mapping_of(template["Resources"]).items():
            if mapping_of(resource)["Type"] == "AWS::SQS::Queue":
                assert len(row(senders(*stacks), prefix + name)) == 3


def test_a_role_that_may_send_is_in_the_row_of_the_queue(stacks: Stacks) -> None:
    assert row(senders(*stacks), "SubmissionQueue")[0] == "`RecurringOrderRole`"
    allow(stacks, "SupervisorRole", "sqs:SendMessage", arn("SubmissionQueue"))
    assert "`SupervisorRole`" in row(senders(*stacks), "SubmissionQueue")[0]


def test_a_queue_of_the_engine_that_the_agent_names_by_its_place_is_found(stacks: Stacks) -> None:
    """stacks/agent.yaml has it as a part of the output ForAgents."""
    assert "`<Agent>Role`" in row(senders(*stacks), "RejectedQueue")[0]
    place: Json = {"Fn::Select": [8, {"Fn::Split": [",", {"Ref": "Engine"}]}]}  # a table
    allow(stacks, "Role", "dynamodb:Scan", place)
    assert row(rights_of_roles(*stacks), "<Agent>Role")[0] == "`ControlTable`"


def test_a_pattern_of_names_stands_for_each_queue_of_such_a_name(stacks: Stacks) -> None:
    pattern = sub("arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Stack}_*ReplyQueue")
    allow(stacks, "SupervisorRole", "sqs:SendMessage", pattern)
    table = senders(*stacks)
    assert "`SupervisorRole`" in row(table, "<Agent>ReplyQueue")[0]
    assert "`SupervisorRole`" not in row(table, "<Agent>ReplyDeadLetterQueue")[0]


def test_a_queue_whose_policy_loses_its_refusal_refuses_nobody(stacks: Stacks) -> None:
    assert row(senders(*stacks), "SchedulerQueue")[2].startswith("all but `OperatorPrincipals`")
    policy = mapping_of(mapping_of(stacks[0]["Resources"])["SchedulerQueuePolicy"])
    statements = mapping_of(mapping_of(policy["Properties"])["PolicyDocument"])["Statement"]
    assert isinstance(statements, list)
    del statements[1]
    assert row(senders(*stacks), "SchedulerQueue")[2] == "nobody"
    assert row(defaults(*stacks), "OperatorPrincipals")[1] == "`SubmissionQueue`"


def excepting(*principals: Json) -> Json:
    return {"Fn::Split": [",", {"Fn::Join": [",", [*principals]]}]}


def test_a_default_that_admits_the_account_is_named_and_one_that_does_not_is_not(
    stacks: Stacks,
) -> None:
    assert row(defaults(*stacks), "OperatorPrincipals")[2] == f"**{ACCOUNT}**"
    assert row(defaults(*stacks), "AnswerPrincipals")[2] == f"**{ACCOUNT}**"
    assert ACCOUNT not in row(defaults(*stacks), "SubmitterPrincipals")[2]
    root = sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")
    narrower: Json = {"Fn::If": ["HasAnswerers", ref("AnswerPrincipals"), root]}
    known = "ReplyQueuePolicy/PolicyDocument/Statement/1/Condition/ArnNotLike/aws:PrincipalArn"
    put(known, excepting(narrower, arn("Role"))).make(stacks[1])
    assert ACCOUNT not in row(defaults(*stacks), "AnswerPrincipals")[2]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            f"{SENDERS}/1/Condition",
            {"Bool": {"aws:ViaAWSService": "false"}},
            "SchedulerQueue refus",
        ),
        (
            f"{SENDERS}/1/Condition/ArnNotLike/aws:PrincipalArn",
            excepting("arn:aws:iam::1:role/x"),
            "a queue takes messages of arn",
        ),
        (
            f"{SENDERS}/1/Condition/ArnNotLike/aws:PrincipalArn",
            excepting({"Fn::If": ["HasOperators", ref("OperatorPrincipals"), sub("arn:*")]}),
            "OperatorPrincipals, if empty, admits",
        ),
        (f"{SENDERS}/1/Effect", "Allow", "SchedulerQueue allows"),
        ("Parameters/OperatorPrincipals/Default", "arn:aws:iam::1:role/x", "is not empty by defau"),
    ],
)
def test_what_the_tables_could_not_tell_is_an_error(
    stacks: Stacks, path: str, value: Json, problem: str
) -> None:
    put(path, value).make(stacks[0])
    with pytest.raises(ValueError, match=problem):
        senders(*stacks) + defaults(*stacks)


def test_a_right_to_rows_names_them_and_one_to_all_rows_names_none(stacks: Stacks) -> None:
    reads, writes, messages, _ = row(rights_of_roles(*stacks), "SubmissionRole")
    assert "`ControlTable` (put rows `plan#*`, `rejected#*`, `schedule#*`, `search`;" in writes
    assert "`ControlTable` (rows `schedules`, `schedule#*`, `search`)" in reads
    assert messages == "receive and delete `SubmissionQueue`"
    assert "`OrderID` of `OrdersTable`" in row(rights_of_people(*stacks), "SubmitterPolicy")[0]
    allow(stacks, "SubmissionRole", "dynamodb:Query", arn("HistoryTable"))
    allow(stacks, "SubmissionRole", "dynamodb:DeleteItem", arn("ControlTable"))
    reads, writes, *_ = row(rights_of_roles(*stacks), "SubmissionRole")
    assert "`HistoryTable`" in reads
    assert "`ControlTable` (put rows `plan#*`, `rejected#*`, `schedule#*`, `search`;" in writes
    assert "delete)" in writes


def test_a_statement_that_only_an_option_adds_is_in_the_table(stacks: Stacks) -> None:
    assert "GetSecretValue" in row(rights_of_roles(*stacks), "<Agent>Role")[3]


def test_a_policy_that_is_added_to_a_role_is_in_its_row(stacks: Stacks) -> None:
    key = "TracingRights/PolicyDocument/Statement/0"
    put(f"{key}/Action", "sns:Publish").make(stacks[0])
    put(f"{key}/Resource", ref("AlertTopic")).make(stacks[0])
    assert "sns:Publish" in row(rights_of_roles(*stacks), "SubmissionRole")[3]


@pytest.mark.parametrize("table", [rights_of_roles, rights_of_people])
def test_an_action_of_another_kind_is_an_error_until_the_table_has_a_place_for_it(
    stacks: Stacks, table: Callable[[Document, Document], str]
) -> None:
    path = "Policies/0/PolicyDocument" if table is rights_of_roles else "PolicyDocument"
    owner = "SubmissionRole" if table is rights_of_roles else "ViewerPolicy"
    put(f"{owner}/{path}/Statement/0/Action", "iam:PassRole").make(stacks[0])
    with pytest.raises(ValueError, match="no place for iam:PassRole"):
        table(*stacks)


def test_what_a_policy_for_people_changes_is_in_its_row(stacks: Stacks) -> None:
    reads, writes, messages, also = row(rights_of_people(*stacks), "OperatorPolicy")
    assert reads == "`ControlTable` (row `rejected#*`); `TasksTable`"
    updated = "update rows `holds`, `notes`, `notes#*`, `rate#*#*`, `schedules`"
    assert writes == f"`ControlTable` ({updated}; put row `limit#*`)"
    assert messages.startswith("delete `RejectedQueue`")
    assert "`lambda:InvokeFunction` on `SubmissionFunction`" in also
    put("OperatorPolicy/PolicyDocument/Statement/2/Action", "sqs:ReceiveMessage").make(stacks[0])
    assert row(rights_of_people(*stacks), "OperatorPolicy")[2].startswith("receive `RejectedQueue`")
