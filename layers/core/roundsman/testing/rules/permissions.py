"""Rights: each function may do what it does and no more; alerts are always encrypted."""

import re
from collections.abc import Iterator, Mapping

from roundsman.testing.rules.application import Application, Rule, compare, compare_rights
from roundsman.testing.rules.queues import QUEUE_ARN
from roundsman.testing.rules.reading import (
    ENGINE_FUNCTIONS,
    ENGINE_TABLES,
    STACK,
    Agent,
    agents,
    allowed_to,
    at,
    dead_letters_of,
    every_statement,
    function_role,
    functions,
    granted,
    items,
    keys_granted,
    of_type,
    queues_read_by,
    reference,
    roles,
    services_granted,
    statements,
    target,
    texts,
)
from roundsman.testing.stack.template import Document, Json, mapping_of

REPLY_QUEUES_OF_APPLICATIONS = (
    "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-reply-*"
)
READ_A_QUEUE = {"ReceiveMessage", "DeleteMessage", "GetQueueAttributes"}
SEND = {"SendMessage"}
CHANGE_A_TASK = {"GetItem", "PutItem", "UpdateItem", "DeleteItem"}
"""An ended task is deleted if its retention is zero; nothing else is ever deleted."""
TABLE_RIGHTS: Mapping[str, Mapping[str, set[str]]] = {
    "SubmissionRole": {
        "OrdersTable": {"GetItem", "PutItem"},
        "TasksTable": CHANGE_A_TASK,
        "ControlTable": {"PutItem"},
    },
    "SchedulerRole": {
        "OrdersTable": {"GetItem"},
        "TasksTable": CHANGE_A_TASK,
        "ControlTable": {"GetItem", "UpdateItem"},
        "HistoryTable": {"PutItem"},
    },
    "SupervisorRole": {
        "TasksTable": CHANGE_A_TASK,
        "TasksTable/index/due": {"Query"},
        "TasksTable/index/failures": {"Query"},
        "ControlTable": {"GetItem", "PutItem", "UpdateItem"},
        "HistoryTable": {"PutItem"},
    },
}
AGENT_TABLE_RIGHTS: Mapping[str, set[str]] = {"ControlTable": {"GetItem", "PutItem", "UpdateItem"}}
ALLOWED_PATTERNS = {
    REPLY_QUEUES_OF_APPLICATIONS,
    *(
        f"{QUEUE_ARN}{STACK}_*{kind}"
        for kind in ("RequestQueue", "ReplyQueue", "ReplyDeadLetterQueue")
    ),
}
ENGINE_SERVICES = {"sqs", "dynamodb", "logs", "sns", "kms"}
SAME_ACCOUNT: Json = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def wildcards(application: Application) -> list[str]:
    """No statement that allows has a wildcard in an action or a resource.

    The exceptions are the names of applications' reply queues, those of the agents' queues, which
    begin with the stack's name and an underscore that no other stack's name has, and a key's own
    policy, in which '*' is that key. A policy with NotAction or NotResource allows all but what it
    names.
    """
    problems = []
    for owner, statement in every_statement(application.template):
        if at(statement, "Effect") != "Allow":
            continue
        sid = f"{owner}: {at(statement, 'Sid')}"
        problems += [
            f"{sid}: the action {action} has a wildcard"
            for action in texts(at(statement, "Action"))
            if "*" in action
        ]
        problems += [
            f"{sid}: {inverse} is not allowed"
            for inverse in ("NotAction", "NotResource")
            if inverse in statement
        ]
        if owner in of_type(application.template, "AWS::KMS::Key"):
            continue
        found = map(target, items(at(statement, "Resource")))
        problems += [
            f"{sid}: the resource {resource} has a wildcard"
            for resource in found
            if "*" in resource and resource not in ALLOWED_PATTERNS
        ]
    return problems


def read_policies(application: Application) -> list[str]:
    """Every statement that allows something is in a policy that the other rules read.

    Those are the policies of roles, queues, topics and keys. Who may assume a role is no right.
    """
    read = [statement for _, statement in every_statement(application.template)]
    return [
        f"{name}: a policy of this kind of resource is not read by any rule"
        for name, resource in mapping_of(application.template.get("Resources")).items()
        for statement in _grants(resource)
        if statement not in read
    ]


def _grants(node: Json) -> Iterator[Document]:
    if isinstance(node, dict):
        if node.get("Effect") == "Allow":
            yield node
        for key, value in node.items():
            yield from _grants(value) if key != "AssumeRolePolicyDocument" else ()
    elif isinstance(node, list):
        for item in node:
            yield from _grants(item)


def managed_policies(application: Application) -> list[str]:
    """No role has a managed policy of AWS: these name no resource."""
    return [
        f"{name}: ManagedPolicyArns must be left out"
        for name, role in roles(application.template).items()
        if "ManagedPolicyArns" in role
    ]


def statement_ids(application: Application) -> list[str]:
    """Every statement says in its Sid, as a sentence of at least two words, what it is for."""
    return [
        f"{owner}: a statement needs a sentence as its Sid, not {at(statement, 'Sid')}"
        for owner, statement in every_statement(application.template)
        if not re.fullmatch(r"([A-Z][a-z]+){2,}", str(statement.get("Sid", "")))
    ]


def function_roles(application: Application) -> list[str]:
    """Every function has a role of its own; any other role is that of a schedule.

    With a shared role an agent could read orders.
    """
    template = application.template
    problems = [
        f"{name}: Role must be {function_role(name)}"
        for name, function in functions(template).items()
        if reference(at(function, "Role")) != function_role(name)
    ]
    expected = {function_role(name) for name in functions(template)} | _schedule_roles(template)
    return problems + compare("the roles", roles(template), expected)


def _schedule_roles(template: Document) -> set[str]:
    schedules = of_type(template, "AWS::Scheduler::Schedule").values()
    return {reference(at(schedule, "Target", "RoleArn")) for schedule in schedules}


def table_rights(application: Application) -> list[str]:
    """A role may do to the engine's tables exactly what its function does.

    No role may scan a table or change its settings, nothing but a task is ever deleted, and an
    agent sees neither tasks nor orders.
    """
    template, problems = application.template, list[str]()
    expected = dict(TABLE_RIGHTS) | {agent.role: AGENT_TABLE_RIGHTS for agent in agents(template)}
    for role in roles(template):
        found = granted(template, role, "dynamodb")
        if role not in TABLE_RIGHTS:  # an agent may have a table of its own
            found = {on: found[on] for on in found if on.partition("/")[0] in ENGINE_TABLES}
        problems += compare_rights(role, found, expected.get(role, {}))
    return problems


def queue_rights(application: Application) -> list[str]:
    """A function may read exactly the queues that invoke it, and send to the queues it writes to:

    - submission to the scheduler and to applications;
    - the scheduler to every agent, to itself and to applications;
    - the supervisor to the scheduler and to applications;
    - an agent to its reply queue;
    - each function that reads a queue to its dead-letter queue and to RejectedQueue.
    """
    template, problems = application.template, list[str]()
    requests = {queue for agent in agents(template) for queue in agent.request_queues}
    sends = {
        "SubmissionRole": {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS},
        "SchedulerRole": {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS} | requests,
        "SupervisorRole": {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS},
    } | {agent.role: {agent.reply_queue} for agent in agents(template)}
    for function in functions(template):
        role, reads = function_role(function), queues_read_by(template, function)
        expected = {queue: set(READ_A_QUEUE) for queue in reads}
        set_aside = {dead_letters_of(template, queue) for queue in reads}
        if function != "SupervisorFunction":  # it reads no messages
            set_aside |= {"RejectedQueue"}
        for queue in sends.get(role, set()) | set_aside:
            expected[queue] = expected.get(queue, set()) | SEND
        problems += compare_rights(role, granted(template, role, "sqs"), expected)
    return problems


def engine_services(application: Application) -> list[str]:
    """The functions of the engine may call SQS, DynamoDB, SNS, KMS and their logs, nothing else.

    An agent may call more: its remote service may be one of AWS.
    """
    return [
        f"{function_role(function)}: actions of {service} must not be there"
        for function in ENGINE_FUNCTIONS
        for service in sorted(
            services_granted(application.template, function_role(function)) - ENGINE_SERVICES
        )
    ]


def agent_rows(application: Application) -> list[str]:
    """In ControlTable an agent may read the holds and its circuit, and write its read marks, its
    hold, its circuit, its rate and the notes of its calls: no row of another agent.
    """
    template, problems = application.template, list[str]()
    for agent in agents(template):
        for action, expected in _rows(agent).items():
            found = keys_granted(template, agent.role, action, "ControlTable")
            where = f"{agent.role}: the rows of ControlTable for {action}"
            if found is None:
                problems.append(f"{where} must be restricted by dynamodb:LeadingKeys")
            else:
                problems += compare(where, found, expected)
    return problems


def _rows(agent: Agent) -> dict[str, set[str]]:
    circuit = f"breaker#{agent.name}"
    rate, calls = f"rate#{agent.name}", f"calls#{agent.name}#*"
    return {
        "GetItem": {"holds", circuit},
        "UpdateItem": {"marks", "holds", circuit, rate, calls},
        "PutItem": {circuit},
    }


def group_rows(application: Application) -> list[str]:
    """In ControlTable the scheduler and the supervisor may update the failure groups only."""
    return [
        f"{role}: the rows of ControlTable for UpdateItem must be groups"
        for role in ("SchedulerRole", "SupervisorRole")
        if keys_granted(application.template, role, "UpdateItem", "ControlTable") != {"groups"}
    ]


def alert_rights(application: Application) -> list[str]:
    """All functions but submission may publish alerts, and use the alert topic's key for it."""
    template, problems = application.template, list[str]()
    may = {function_role(name) for name in functions(template)} - {"SubmissionRole"}
    for role in roles(template):
        alerts = role in may
        topic = {"AlertTopic": {"Publish"}} if alerts else {}
        key = {"AlertKey": {"GenerateDataKey", "Decrypt"}} if alerts else {}
        problems += compare_rights(role, granted(template, role, "sns"), topic)
        problems += compare_rights(role, granted(template, role, "kms"), key)
    return problems


def log_rights(application: Application) -> list[str]:
    """Every function may write to its own log group and to no other."""
    template, problems = application.template, list[str]()
    for function in functions(template):
        role = function_role(function)
        own = {f"{function.removesuffix('Function')}Logs": {"CreateLogStream", "PutLogEvents"}}
        problems += compare_rights(role, granted(template, role, "logs"), own)
    return problems


def schedule_roles(application: Application) -> list[str]:
    """The role of a schedule may invoke the schedule's target and do nothing else; only EventBridge
    Scheduler of this account may take it (AWS's advice against the confused deputy).
    """
    template, problems = application.template, list[str]()
    for name, schedule in of_type(template, "AWS::Scheduler::Schedule").items():
        role = reference(at(schedule, "Target", "RoleArn"))
        aim = reference(at(schedule, "Target", "Arn"))
        action = "lambda:InvokeFunction" if aim in functions(template) else "sqs:SendMessage"
        found = [
            (
                at(one, "Effect"),
                texts(at(one, "Action")),
                [*map(target, items(at(one, "Resource")))],
            )
            for one in allowed_to(template, role)
        ]
        if found != [("Allow", [action], [aim])]:
            problems.append(f"{name}: its role may do {action} on {aim}, and nothing else")
        trust = statements(at(roles(template).get(role), "AssumeRolePolicyDocument"))
        if [(at(one, "Principal"), at(one, "Condition")) for one in trust] != [
            ({"Service": "scheduler.amazonaws.com"}, SAME_ACCOUNT)
        ]:
            problems.append(f"{role}: only scheduler.amazonaws.com of this account may take it")
    return problems


def alert_encryption(application: Application) -> list[str]:
    """Alerts are encrypted under a key of the stack, which is rotated, and which alarms may use.

    CloudWatch cannot publish to a topic under the key that AWS manages for SNS.
    """
    template, problems = application.template, list[str]()
    topic = of_type(template, "AWS::SNS::Topic").get("AlertTopic")
    key = of_type(template, "AWS::KMS::Key").get("AlertKey")
    if reference(at(topic, "KmsMasterKeyId")) != "AlertKey":
        problems.append("AlertTopic: KmsMasterKeyId must be AlertKey")
    if at(key, "EnableKeyRotation") is not True:
        problems.append("AlertKey: EnableKeyRotation must be true")
    alarms = [
        action
        for statement in statements(at(key, "KeyPolicy"))
        if at(statement, "Principal", "Service") == "cloudwatch.amazonaws.com"
        for action in texts(at(statement, "Action"))
    ]
    return problems + compare(
        "AlertKey: the actions of alarms", alarms, ("kms:Decrypt", "kms:GenerateDataKey")
    )


def alert_transport(application: Application) -> list[str]:
    """The alert topic refuses a call without TLS, and accepts the alarms of this account."""
    policies = [
        statements(at(policy, "PolicyDocument"))
        for policy in of_type(application.template, "AWS::SNS::TopicPolicy").values()
        if {"Ref": "AlertTopic"} in items(at(policy, "Topics"))
    ]
    match policies:
        case [
            [
                {
                    "Effect": "Deny",
                    "Principal": "*",
                    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                },
                {"Effect": "Allow", "Principal": principal, "Condition": condition},
            ]
        ] if principal == {"Service": "cloudwatch.amazonaws.com"} and condition == SAME_ACCOUNT:
            return []
        case _:
            return [
                "AlertTopic needs a policy that denies all without aws:SecureTransport, and then "
                "allows cloudwatch.amazonaws.com of this account"
            ]


RULES: tuple[Rule, ...] = (
    wildcards,
    read_policies,
    managed_policies,
    statement_ids,
    function_roles,
    table_rights,
    queue_rights,
    engine_services,
    agent_rows,
    group_rows,
    alert_rights,
    log_rights,
    schedule_roles,
    alert_encryption,
    alert_transport,
)
