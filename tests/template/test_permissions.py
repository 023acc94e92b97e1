"""Rights in our stacks: each function may do what it does and no more; alerts are encrypted."""

import json
import re
from collections.abc import Iterator, Mapping

from roundsman_dev.check.reading import (
    ENGINE_FUNCTIONS,
    STACK,
    TemplateAgent,
    agents,
    at,
    chosen,
    functions,
    items,
    mappings_in,
    of_type,
    reference,
    variables,
)
from roundsman_dev.template import Document, Json, part
from tests.support.template_reading import (
    ENGINE_TABLES,
    NO_VALUE,
    PERSONAL_POLICIES,
    QUEUE_ARN,
    added_policies,
    aliases,
    allowed_to,
    dead_letters_of,
    every_statement,
    former_key,
    function_role,
    granted,
    keys_granted,
    own_key,
    personal_policies,
    queues_read_by,
    roles,
    services_granted,
    statements,
    target,
    texts,
)
from tests.template.faults import (
    Fault,
    allow,
    arn,
    drop,
    fails_with,
    in_statement,
    put,
    ref,
    remove,
    sub,
    with_services,
    without_resource,
)

ROLE = "GiftWrapRole"

# Wildcards

REPLY_QUEUES_OF_APPLICATIONS = f"{QUEUE_ARN}{STACK}-reply-*"
PAYLOADS = "Payloads/*"
"""The objects of the PayloadBucket."""
ALLOWED_PATTERNS = {
    REPLY_QUEUES_OF_APPLICATIONS,
    PAYLOADS,
    *(f"{QUEUE_ARN}{STACK}_*{k}" for k in ("RequestQueue", "ReplyQueue", "ReplyDeadLetterQueue")),
}
OF_MANY_STACKS = {
    f"{QUEUE_ARN}{STACK}_*",
    f"{QUEUE_ARN}{STACK}-*DeadLetterQueue-*",
    "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*",
    *(
        f"arn:${{AWS::Partition}}:{kind}{STACK}{rest}"
        for kind, rest in (
            ("cloudformation:${AWS::Region}:${AWS::AccountId}:stack/", "/*"),
            ("cloudformation:${AWS::Region}:${AWS::AccountId}:stack/", "-*"),
            ("lambda:${AWS::Region}:${AWS::AccountId}:function:", "-*"),
            ("scheduler:${AWS::Region}:${AWS::AccountId}:schedule/default/", "-*"),
        )
    ),
}
"""What a policy for people names by the beginning of its name: an agent's stack makes it. A list of
alarms is a right on all alarms."""
WITHOUT_A_RESOURCE = {
    "cloudwatch:GetMetricData",
    "lambda:ListEventSourceMappings",
}
"""Actions for which AWS has no resource."""
TRACE = ["xray:PutTraceSegments"]
SIDE_POLICY: Document = {
    "Type": "AWS::IAM::ManagedPolicy",
    "Properties": {"PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "sqs:*"}]}},
}


@fails_with(
    allow(ROLE, "s3:*", arn("OrdersTable")),
    allow(ROLE, "s3:GetObject", "*"),
    put("ViewerPolicy/PolicyDocument/Statement/0/Resource", "*"),
    allow("SchedulerRole", "sqs:SendMessage", sub(f"{QUEUE_ARN}{STACK}*RequestQueue")),
    in_statement(ROLE, "ReadsItsRequests", "NotAction", "sqs:DeleteQueue"),
    in_statement(ROLE, "ReadsItsRequests", "NotResource", "*"),
)
def test_no_statement_that_allows_has_a_wildcard(template: Document) -> None:
    """The exceptions are the names of applications' reply queues, those of the agents' queues,
    which begin with the stack's name and an underscore that no other stack's name has, what has no
    resource in AWS (traces, a network's interfaces), a key's own policy, in which '*' is that key,
    and for people what the agents' stacks make. A policy with NotAction or NotResource allows all
    but what it names."""
    people = personal_policies(template)
    for owner, statement in every_statement(template):
        if at(statement, "Effect") != "Allow":
            continue
        actions = texts(at(statement, "Action"))
        assert not [action for action in actions if "*" in action], owner
        assert not {"NotAction", "NotResource"} & set(statement), owner
        is_key = owner in of_type(template, "AWS::KMS::Key")
        is_of_people = owner in people and set(actions) <= WITHOUT_A_RESOURCE
        if is_key or is_of_people or actions == TRACE or _is_of_network(statement):
            continue
        patterns = ALLOWED_PATTERNS | (OF_MANY_STACKS if owner in people else set())
        found = {target(resource) for resource in items(at(statement, "Resource"))}
        assert not [one for one in found - patterns if "*" in one], owner


@fails_with(
    put("Resources/SidePolicy", SIDE_POLICY),
    put(f"{ROLE}/ManagedPolicyArns", ["arn:aws:iam::aws:policy/AdministratorAccess"]),
)
def test_every_statement_that_allows_something_is_in_a_policy_that_these_tests_read(
    template: Document,
) -> None:
    """Those are the policies of roles, those added to roles, and those of queues, topics and keys.
    No role has a policy of AWS. Who may assume a role is no right."""
    read = [statement for _, statement in every_statement(template)]
    for name, resource in part(template, "Resources").items():
        assert all(statement in read for statement in _grants(template, resource)), name
    assert not [name for name, role in roles(template).items() if "ManagedPolicyArns" in role]


def _grants(template: Document, node: Json) -> Iterator[Document]:
    node = chosen(template, node)
    if isinstance(node, dict):
        if node.get("Effect") == "Allow":
            yield node
        for key, value in node.items():
            yield from _grants(template, value) if key != "AssumeRolePolicyDocument" else ()
    elif isinstance(node, list):
        for item in node:
            yield from _grants(template, item)


READS = re.compile(
    r"\w+:((Describe|Get|List)\w+|BatchGetItem|Query|Scan|Decrypt"
    r"|ReceiveMessage|ChangeMessageVisibility)"
)
"""The actions of a viewer. The last two look at a message and let it be seen again."""


@fails_with(
    drop("Resources/ViewerPolicy"),
    drop("ViewerPolicy/ManagedPolicyName"),
    put("ViewerPolicy/Description", "Reads"),
    put("OperatorPolicy/Roles", [ref(ROLE)]),
    put("ViewerPolicy/PolicyDocument/Statement/0/Action", "sqs:DeleteMessage"),
    drop("OperatorPolicy/PolicyDocument/Statement/3/Condition"),
)
def test_the_policies_for_people_have_a_name_and_are_given_to_nobody(template: Document) -> None:
    """IAM Identity Center asks for the name; it has the region, since policies of all regions share
    their names. A description could not be changed without another policy, which the name forbids.
    A viewer's policy changes nothing. What the others write in a table is limited to rows."""
    policies = of_type(template, "AWS::IAM::ManagedPolicy")
    assert set(PERSONAL_POLICIES) <= set(policies)
    for name in PERSONAL_POLICIES:
        assert not {"Description", "Groups", "Roles", "Users"} & set(policies[name]), name
        assert policies[name].get("ManagedPolicyName") == sub(f"{STACK}-${{AWS::Region}}-{name}")
    for name, statement in every_statement(template):
        if name in PERSONAL_POLICIES:
            writes = [one for one in texts(at(statement, "Action")) if not READS.fullmatch(one)]
            assert not writes or name != "ViewerPolicy"
            if any(one.startswith("dynamodb:") for one in writes):
                condition = json.dumps(statement.get("Condition"))
                assert "dynamodb:LeadingKeys" in condition, statement.get("Sid")


@fails_with(
    in_statement(ROLE, "ReadsItsRequests", "Sid", None),
    in_statement(ROLE, "ReadsItsRequests", "Sid", "Statement1"),
)
def test_every_statement_says_in_its_sid_as_a_sentence_what_it_is_for(template: Document) -> None:
    for owner, statement in every_statement(template):
        assert re.fullmatch(r"([A-Z][a-z]+){2,}", str(statement.get("Sid", ""))), owner


@fails_with(
    put("GiftWrapFunction/Role", arn("BillingRole")),
    put("Resources/StrayRole", {"Type": "AWS::IAM::Role", "Properties": {}}),
)
def test_every_function_has_a_role_of_its_own_and_any_other_is_that_of_a_schedule(
    template: Document,
) -> None:
    """With a shared role an agent could read orders."""
    for name, function in functions(template).items():
        assert reference(at(function, "Role")) == function_role(name)
    of_schedules = {"RecurringOrderRole"}  # an application may have no such schedule
    of_schedules |= {
        reference(at(schedule, "Target", "RoleArn"))
        for schedule in of_type(template, "AWS::Scheduler::Schedule").values()
    }
    assert set(roles(template)) == {*map(function_role, functions(template))} | of_schedules


# Tables and queues

CHANGE_A_TASK = {"BatchGetItem", "GetItem", "PutItem", "UpdateItem", "DeleteItem"}
"""An ended task is deleted if its retention is zero."""
TABLE_RIGHTS: Mapping[str, Mapping[str, set[str]]] = {
    "SubmissionRole": {
        "OrdersTable": {"GetItem", "PutItem", "UpdateItem"},
        "TasksTable": CHANGE_A_TASK,
        "ControlTable": {"GetItem", "PutItem", "UpdateItem"},
    },
    "SchedulerRole": {
        "OrdersTable": {"GetItem", "UpdateItem"},
        "TasksTable": CHANGE_A_TASK,
        "TasksTable/index/parked": {"Query"},
        "ControlTable": {"GetItem", "PutItem", "UpdateItem", "DeleteItem"},
        "HistoryTable": {"PutItem", "Query", "UpdateItem"},
    },
    "SupervisorRole": {
        "OrdersTable": {"GetItem", "UpdateItem"},
        "TasksTable": CHANGE_A_TASK,
        "TasksTable/index/due": {"Query"},
        "TasksTable/index/failures": {"Query"},
        "TasksTable/index/parked": {"Query"},
        "ControlTable": {"GetItem", "PutItem", "UpdateItem", "DeleteItem"},
        "HistoryTable": {"PutItem", "Query"},
    },
}
AGENT_TABLE_RIGHTS = {"ControlTable": {"GetItem", "PutItem", "UpdateItem"}}


@fails_with(
    allow(ROLE, "dynamodb:GetItem", arn("OrdersTable")),
    allow(ROLE, "dynamodb:Query", sub("${TasksTable.Arn}/index/due")),
    allow("SchedulerRole", "dynamodb:Scan", arn("TasksTable")),
    allow("SupervisorRole", "dynamodb:DeleteItem", arn("HistoryTable")),
    allow("SchedulerRole", "dynamodb:GetItem", arn("GiftWrapTable")),
    allow("SupervisorScheduleRole", "dynamodb:GetItem", arn("OrdersTable")),
    in_statement(
        "SubmissionRole", "CreatesOrdersOnceAndSetsTheirExpiry", "Action", "dynamodb:GetItem"
    ),
)
def test_a_role_may_do_to_the_tables_exactly_what_its_function_does(template: Document) -> None:
    """No role may scan a table or change its settings, nothing but a task and the row of a limit is
    ever deleted, and an agent sees neither tasks nor orders."""
    expected = dict(TABLE_RIGHTS) | {agent.role: AGENT_TABLE_RIGHTS for agent in agents(template)}
    for role in roles(template):
        assert granted(template, role, "dynamodb") == expected.get(role, {}), role
    assert {on.partition("/")[0] for of in expected.values() for on in of} == set(ENGINE_TABLES)


READ_A_QUEUE = {"ReceiveMessage", "DeleteMessage", "GetQueueAttributes"}


def of_agents(kind: str) -> Document:
    """The resource that stands for the queues of one kind of every agent of the stack."""
    return sub(f"{QUEUE_ARN}{STACK}_*{kind}")


REASONS = "SendsDeadLettersWithTheReason"


@fails_with(
    allow(ROLE, "sqs:ReceiveMessage", arn("BillingRequestQueue")),
    allow(ROLE, "sqs:SendMessage", arn("SchedulerQueue")),
    allow(ROLE, "sqs:PurgeQueue", arn("GiftWrapRequestQueue")),
    allow(ROLE, "sqs:ChangeMessageVisibility", arn("GiftWrapRequestQueue")),
    in_statement("SchedulerRole", "ReadsCommandsAndReplies", "Action", "sqs:DeleteMessage"),
    without_resource(ROLE, "ReadsItsRequests", arn("GiftWrapUrgentRequestQueue")),
    without_resource("SchedulerRole", REASONS, of_agents("ReplyDeadLetterQueue")),
    without_resource(ROLE, REASONS, arn("GiftWrapRequestDeadLetterQueue")),
    without_resource("SchedulerRole", "ReadsCommandsAndReplies", of_agents("ReplyQueue")),
    allow("SchedulerRole", "sqs:ReceiveMessage", of_agents("RequestQueue")),
    without_resource(
        "SchedulerRole",
        "SendsRequestsAndInspectsAndSetsRejectedMessagesAside",
        of_agents("RequestQueue"),
    ),
    allow("SupervisorRole", "sqs:SendMessage", arn("GiftWrapRequestQueue")),
    allow("SubmissionRole", "sqs:SendMessage", arn("GiftWrapRequestQueue")),
)
def test_a_function_reads_the_queues_that_invoke_it_and_sends_to_those_it_writes_to(
    template: Document,
) -> None:
    """Submission writes to the scheduler and to applications; the scheduler to every agent, to
    itself and to applications; the supervisor to the scheduler and to applications; an agent to its
    reply queue; each function that reads a queue to its dead-letter queue; all to RejectedQueue.

    The supervisor may also count the messages of the queues that the scheduler reads. Submission
    and the scheduler may also hide for longer what they read."""
    requests = {queue for agent in agents(template) for queue in agent.request_queues}
    of_the_engine = {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS}
    sends = {agent.role: {agent.reply_queue} for agent in agents(template)}
    sends |= {"SchedulerRole": of_the_engine | requests}
    for function in functions(template):
        role, reads = function_role(function), queues_read_by(template, function)
        may = {"ChangeMessageVisibility"} if role in ("SubmissionRole", "SchedulerRole") else set()
        expected = dict.fromkeys(reads, READ_A_QUEUE | may)
        set_aside = {dead_letters_of(template, queue) for queue in reads} | {"RejectedQueue"}
        if function == "SupervisorFunction":  # it reads no messages
            counted = queues_read_by(template, "SchedulerFunction")
            expected = {queue: {"GetQueueAttributes"} for queue in counted}
            set_aside = {"RejectedQueue"}  # of signals that no step can read any more
        for queue in sends.get(role, of_the_engine) | set_aside:
            expected[queue] = expected.get(queue, set()) | {"SendMessage"}
        assert granted(template, role, "sqs") == expected, role


@fails_with(
    allow("SubmissionRole", "s3:GetObject", arn("OrdersTable")),
    allow("SchedulerRole", "events:PutEvents", arn("OrdersTable")),
)
def test_a_function_of_the_engine_calls_no_other_service_of_aws(template: Document) -> None:
    """The scheduler alone calls S3, to erase payloads."""
    for function in ENGINE_FUNCTIONS:
        found = services_granted(template, function_role(function))
        its_own = {"s3"} if function == "SchedulerFunction" else set()
        assert found - its_own <= {"sqs", "dynamodb", "logs", "sns", "kms", "xray"}, function


@fails_with(
    drop("Resources/PayloadRights"),
    drop("Resources/PayloadRights/Condition"),
    put("PayloadRights/Roles", [ref("SupervisorRole")]),
    put("PayloadRights/PolicyDocument/Statement/1/Action", "s3:DeleteObject"),
    put("PayloadRights/PolicyDocument/Statement/1/Action", "s3:GetObject"),
    allow("SchedulerRole", "s3:GetObject", sub("${Payloads.Arn}/*")),
    allow(ROLE, "s3:DeleteObject", sub("${Payloads.Arn}/*")),
    allow(ROLE, "s3:ListBucket", arn("Payloads")),
)
def test_without_a_bucket_nobody_has_a_right_to_payloads_but_the_scheduler_to_erase_them(
    template: Document,
) -> None:
    """The scheduler's is in a policy that is only made with the bucket (`test_payloads.py`)."""
    found: dict[str, dict[str, set[str]]] = {}
    for owner, statement in every_statement(template):
        for action in texts(at(statement, "Action")):
            if action.startswith("s3:") and at(statement, "Effect") == "Allow":
                where = {target(one) for one in items(at(statement, "Resource"))}
                found.setdefault(owner, {}).setdefault(action, set()).update(where)
    expected = {
        "SchedulerRole": {
            "s3:ListBucketVersions": {"Payloads"},
            "s3:DeleteObjectVersion": {PAYLOADS},
        }
    }
    assert found == expected
    assert at(template, "Resources", "PayloadRights", "Condition") == "HasPayloads"


# Rows of ControlTable

KEYS = "ForAllValues:StringEquals"
ITS_CALLS = "NotesItsCallsOfStepsWithSeveralAgents"


def of_rows(role: str, sid: str, *keys: str, operator: str = KEYS) -> Fault:
    """A statement of a role about other rows."""
    return in_statement(role, sid, "Condition", {operator: {"dynamodb:LeadingKeys": [*keys]}})


@fails_with(
    in_statement(ROLE, "OpensItsCircuit", "Condition", None),
    in_statement(ROLE, "KeepsItsMarksItsHoldItsCircuitAndItsRate", "Effect", "Deny"),
    of_rows(ROLE, "OpensItsCircuit", "breaker#billing"),
    of_rows(ROLE, ITS_CALLS, "calls#gift_wrap#*"),
    of_rows(ROLE, "KeepsTheRatesOfTenants", "rate#*", operator="ForAllValues:StringLike"),
    of_rows(ROLE, ITS_CALLS, "calls#*", operator="ForAllValues:StringLike"),
)
def test_an_agent_reads_and_writes_no_row_of_another_agent(template: Document) -> None:
    """It may read the holds and its circuit, and write its read marks, its hold, its circuit, its
    rate, those of tenants and the notes of its calls."""
    for agent in agents(template):
        for action, expected in _rows(agent).items():
            assert keys_granted(template, agent.role, action, "ControlTable") == expected, action


def _rows(agent: TemplateAgent) -> dict[str, set[str]]:
    circuit = f"breaker#{agent.name}"
    rate, calls = f"rate#{agent.name}", f"calls#{agent.name}#*"
    tenants = f"rate#{agent.name}#*"
    return {
        "GetItem": {"holds", circuit},
        "UpdateItem": {"marks", "holds", circuit, rate, calls, tenants},
        "PutItem": {circuit},
    }


ENGINE_ROWS = {
    ("SchedulerRole", "PutItem"): {"limit#*", "search"},
    ("SchedulerRole", "DeleteItem"): {"limit#*"},
    ("SupervisorRole", "DeleteItem"): {"limit#*"},
    ("SchedulerRole", "UpdateItem"): {"groups", "marks"},
    ("SupervisorRole", "UpdateItem"): {"bulk", "groups", "marks", "wakes"},
    ("SubmissionRole", "GetItem"): {"search", "schedules", "schedule#*"},
    ("SubmissionRole", "PutItem"): {"plan#*", "rejected#*", "schedule#*", "search"},
    ("SubmissionRole", "UpdateItem"): {"bulk"},
    ("SupervisorRole", "PutItem"): {"bulk#*", "leases", "limit#*", "schedule#*"},
}


@fails_with(
    in_statement("SchedulerRole", "OpensFailureGroupsAndNotesReads", "Condition", None),
    of_rows(
        "SupervisorRole",
        "OpensAndClosesFailureGroupsAndAsksForMarksAndWakesOrders",
        "groups",
        "holds",
    ),
    in_statement("SubmissionRole", "StoresPlansAndKeepsRejections", "Condition", None),
    of_rows("SubmissionRole", "MakesAndReadsTheSecretOfSearch", "search", "marks"),
    of_rows("SubmissionRole", "SeesWhichSchedulesArePaused", "schedules", "marks"),
    of_rows("SubmissionRole", "MarksTheSchedulesWhoseOrdersWait", "bulk", "marks"),
    in_statement("SubmissionRole", "DecidesWhatBecomesOfTheRunsOfSchedules", "Condition", None),
    of_rows("SchedulerRole", "MakesTheSecretOfSearch", "search", "leases"),
    of_rows("SupervisorRole", "HoldsLeases", "leases", "holds"),
)
def test_the_engine_writes_its_own_rows_only(template: Document) -> None:
    """The scheduler failure groups and read marks, the supervisor these, leases and bulk runs,
    submission plans; submission and the scheduler the secret of search, submission and the
    supervisor what becomes of the runs of schedules."""
    for (role, action), rows in ENGINE_ROWS.items():
        assert keys_granted(template, role, action, "ControlTable") == rows, role


# Alerts, credentials, networks, logs, traces

HEARTBEAT, HEARTBEAT_ROLE = "AlertHeartbeat", "AlertHeartbeatRole"


def is_of_a_credential(statement: Document) -> bool:
    """Whether it is the right to a key by the stores of credentials in the key's own region."""
    region = {"Fn::Select": [3, {"Fn::Split": [":", at(statement, "Resource")]}]}
    return at(statement, "Condition", "StringEquals", "kms:ViaService") == [
        {"Fn::Join": [".", [store, region, "amazonaws.com"]]} for store in ("secretsmanager", "ssm")
    ]


@fails_with(
    allow("SubmissionRole", "sns:Publish", ref("AlertTopic")),
    allow(ROLE, "sns:Subscribe", ref("AlertTopic")),
    in_statement(ROLE, "EncryptsItsAlerts", "Action", "kms:Decrypt"),
    in_statement(ROLE, "AlertsOperatorsToItsCircuit", "Effect", "Deny"),
)
def test_all_functions_but_submission_and_the_heartbeat_may_publish_alerts(
    template: Document,
) -> None:
    """And use the alert topic's key for it. Other keys have tests of their own."""
    may = {*map(function_role, functions(template)), HEARTBEAT_ROLE} - {"SubmissionRole"}
    others = {target(own_key(template)), target(former_key(template))}
    for role in roles(template):
        of_credentials = {
            target(at(one, "Resource"))
            for one in allowed_to(template, role)
            if is_of_a_credential(one)
        }
        keys = granted(template, role, "kms")
        keys = {key: keys[key] for key in keys.keys() - others - of_credentials}
        alerts = role in may
        assert granted(template, role, "sns") == ({"AlertTopic": {"Publish"}} if alerts else {})
        assert keys == ({"AlertKey": {"GenerateDataKey", "Decrypt"}} if alerts else {}), role


@fails_with(
    allow(ROLE, "secretsmanager:GetSecretValue", ref("OtherSecret")),
    allow(ROLE, "ssm:GetParameter", ref("OtherParameter")),
    allow("SchedulerRole", "secretsmanager:GetSecretValue", ref("OtherSecret")),
    put("GiftWrapFunction/Environment/Variables/CREDENTIAL", ref("OtherSecret")),
    put(
        "Conditions/GiftWrapHasCredentialKey",
        {"Fn::Not": [{"Fn::Equals": ["a key", ""]}]},
    ),
)
def test_a_role_may_read_its_agents_credential_and_no_other(template: Document) -> None:
    """It may use a key to decrypt only if it has a credential, and only through the service that
    stores it."""
    own = {agent.role: variables(template, agent.function) for agent in agents(template)}
    for role in roles(template):
        credential = own.get(role, {}).get("CREDENTIAL", "")
        for service, action in (("secretsmanager", "GetSecretValue"), ("ssm", "GetParameter")):
            expected = {target(credential): {action}} if credential != "" else {}
            assert granted(template, role, service) == expected, role
        for statement in allowed_to(template, role):
            if is_of_a_credential(statement):
                assert credential != "", role
                assert texts(at(statement, "Action")) == ["kms:Decrypt"], role


NETWORK_INTERFACES = {
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
}
EVERY_FUNCTION = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*"


@fails_with(
    put("GiftWrapFunction/VpcConfig", {"SubnetIds": ["subnet-0a1b2c3d"]}),
    allow(ROLE, "ec2:CreateNetworkInterface", "*"),
    with_services(
        in_statement("PaymentRole", "DeniesItsCodeTheRightsOfItsNetwork", "Effect", "Allow")
    ),
)
def test_only_the_role_of_a_function_in_a_vpc_may_handle_network_interfaces(
    template: Document,
) -> None:
    """Lambda does it with that role, and a denial keeps the function's code from it (AWS Lambda
    Developer Guide, "Giving Lambda functions access to resources in an Amazon VPC")."""
    for name, function in functions(template).items():
        network = chosen(template, at(function, "VpcConfig"))
        about = [s for s in allowed_to(template, function_role(name)) if _names_ec2(s)]
        assert all(map(_is_of_network, about)), name
        wanted = ["Allow", "Deny"] if network not in (None, NO_VALUE) else []
        assert [at(statement, "Effect") for statement in about] == wanted, name


def _names_ec2(statement: Document) -> bool:
    return any(action.startswith("ec2:") for action in texts(at(statement, "Action")))


def _is_of_network(statement: Document) -> bool:
    denied = at(statement, "Condition", "ArnLike", "lambda:SourceFunctionArn", "Fn::Sub")
    if at(statement, "Effect") == "Deny" and denied != EVERY_FUNCTION:
        return False
    if at(statement, "Effect") == "Allow" and "Condition" in statement:
        return False
    return set(texts(at(statement, "Action"))) == NETWORK_INTERFACES


@fails_with(in_statement(ROLE, "WritesItsOwnLog", "Resource", arn("BillingLogs")))
def test_every_function_may_write_to_its_own_log_group_and_to_no_other(template: Document) -> None:
    for function in functions(template):
        own = {f"{function.removesuffix('Function')}Logs": {"CreateLogStream", "PutLogEvents"}}
        assert granted(template, function_role(function), "logs") == own


@fails_with(
    remove("GiftWrapTracingRights/Roles", ref(ROLE)),
    allow("SchedulerRole", "xray:BatchGetTraces", "*"),
    drop("Resources/TracingRights/Condition"),
    drop("GiftWrapFunction/Environment/Variables/TRACING_SAMPLE_PERCENT"),
)
def test_every_function_may_send_traces_where_orders_are_traced_and_only_there(
    template: Document,
) -> None:
    """The right is in a policy with a condition, and the function knows the sampled percentage."""
    for function in functions(template):
        role = function_role(function)
        assert granted(template, role, "xray") == {"*": {"PutTraceSegments"}}, role
        traced = [
            name
            for name, policy in added_policies(template, role).items()
            for one in statements(at(policy, "PolicyDocument"))
            if texts(at(one, "Action")) == TRACE
        ]
        assert traced, role
        assert all(at(template, "Resources", name, "Condition") for name in traced), role
        assert "TRACING_SAMPLE_PERCENT" in variables(template, function), function


# Schedules and alerts

SAME_ACCOUNT: Json = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


@fails_with(
    allow("SupervisorScheduleRole", "lambda:InvokeFunction", arn("GiftWrapFunction")),
    in_statement(
        "SupervisorScheduleRole",
        "SendsTheSupervisorOnItsRounds",
        "Resource",
        arn("GiftWrapFunction"),
    ),
    drop("SupervisorScheduleRole/AssumeRolePolicyDocument/Statement/0/Condition"),
    allow("AlertHeartbeatRole", "sqs:SendMessage", arn("SchedulerQueue")),
)
def test_the_role_of_a_schedule_may_invoke_its_target_and_do_nothing_else(
    template: Document,
) -> None:
    """Only EventBridge Scheduler of this account may take it (AWS's advice against the confused
    deputy)."""
    for name, schedule in of_type(template, "AWS::Scheduler::Schedule").items():
        role = reference(at(schedule, "Target", "RoleArn"))
        trust = statements(at(roles(template).get(role), "AssumeRolePolicyDocument"))
        taken = [(at(one, "Principal"), at(one, "Condition")) for one in trust]
        assert taken == [({"Service": "scheduler.amazonaws.com"}, SAME_ACCOUNT)], role
        if name == HEARTBEAT:  # which publishes alerts
            assert role == HEARTBEAT_ROLE
            assert services_granted(template, role) == {"sns", "kms"}
            continue
        aim = reference(at(schedule, "Target", "Arn"))
        known = {*functions(template), *aliases(template)}
        action = "lambda:InvokeFunction" if aim in known else "sqs:SendMessage"
        found = [
            (
                at(one, "Effect"),
                texts(at(one, "Action")),
                [*map(target, items(at(one, "Resource")))],
            )
            for one in allowed_to(template, role)
            if items(at(one, "Resource")) != [own_key(template)]  # of test_encryption
        ]
        set_aside = reference(at(schedule, "Target", "DeadLetterConfig", "Arn"))
        assert found == [("Allow", [action], [aim, *([set_aside] if set_aside else [])])], name


@fails_with(
    put("AlertTopic/KmsMasterKeyId", "alias/aws/sns"),
    put("AlertKey/EnableKeyRotation", True),
    put("AlertKey/KeyPolicy/Statement/1/Action", ["kms:Decrypt"]),
)
def test_alerts_are_encrypted_under_a_key_that_alarms_may_use_and_that_grows_no_dearer(
    template: Document,
) -> None:
    """CloudWatch cannot publish to a topic under the key that AWS manages for SNS."""
    topic = of_type(template, "AWS::SNS::Topic").get("AlertTopic")
    key = of_type(template, "AWS::KMS::Key").get("AlertKey")
    branches = items(at(topic, "KmsMasterKeyId", "Fn::If"))
    assert arn("AlertKey") in [one for each in branches for one in items(at(each, "Fn::If"))]
    assert at(key, "EnableKeyRotation") is False
    of_alarms = [
        action
        for statement in statements(at(key, "KeyPolicy"))
        if at(statement, "Principal", "Service") == "cloudwatch.amazonaws.com"
        for action in texts(at(statement, "Action"))
    ]
    assert sorted(of_alarms) == ["kms:Decrypt", "kms:GenerateDataKey"]


TOPIC_POLICY = "AlertTopicPolicy/PolicyDocument/Statement"


@fails_with(
    put(f"{TOPIC_POLICY}/0/Effect", "Allow"),
    drop(f"{TOPIC_POLICY}/1/Condition"),
    put(f"{TOPIC_POLICY}/1/Condition", {"StringEquals": {"aws:SourceAccount": "123456789012"}}),
    put(f"{TOPIC_POLICY}/1/Principal", {"Service": "events.amazonaws.com"}),
    drop("Resources/AlertTopicPolicy"),
)
def test_the_alert_topic_refuses_a_call_without_tls_and_accepts_alarms_of_this_account(
    template: Document,
) -> None:
    found = [
        (at(one, "Effect"), at(one, "Principal"), at(one, "Condition"))
        for policy in of_type(template, "AWS::SNS::TopicPolicy").values()
        if {"Ref": "AlertTopic"} in items(at(policy, "Topics"))
        for one in mappings_in(at(policy, "PolicyDocument", "Statement"))
    ]
    assert found == [
        ("Deny", "*", {"Bool": {"aws:SecureTransport": "false"}}),
        ("Allow", {"Service": "cloudwatch.amazonaws.com"}, SAME_ACCOUNT),
    ]


# Sizes

POLICY_CHARACTERS = 10_240
"""Of all inline policies of one role together; white space does not count."""


@fails_with(allow("SchedulerRole", "sqs:SendMessage", [arn(f"Queue{n}") for n in range(60)]))
def test_the_inline_policies_of_a_role_fit_in_iams_limit_however_long_the_names_are(
    template: Document,
) -> None:
    for name, role in roles(template).items():
        policies = [at(one, "PolicyDocument") for one in mappings_in(role.get("Policies"))]
        sizes = (len(json.dumps(_longest(one), separators=(",", ":"))) for one in policies)
        assert sum(sizes) <= POLICY_CHARACTERS, name


def _longest(value: Json) -> Json:
    """The value with each intrinsic function replaced by the longest text that it may become."""
    match value:
        case {"Fn::Sub": str(text), **others} if not others:
            return re.sub(r"\$\{[^}]*\}", "x" * 40, text)
        case dict() if len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::")):
            return "x" * 160
        case dict():
            return {key: _longest(inner) for key, inner in value.items()}
        case list():
            return [_longest(inner) for inner in value]
        case _:
            return value
