"""Rights: each function may do what it does and no more; alerts are always encrypted."""

import json
import re
from collections.abc import Iterator, Mapping

from roundsman.testing.rules.application import Application, Rule, compare, compare_rights
from roundsman.testing.rules.queues import QUEUE_ARN
from roundsman.testing.rules.reading import (
    ENGINE_FUNCTIONS,
    ENGINE_TABLES,
    NO_VALUE,
    PERSONAL_POLICIES,
    STACK,
    TemplateAgent,
    added_policies,
    agents,
    aliases,
    allowed_to,
    at,
    chosen,
    dead_letters_of,
    every_statement,
    former_key,
    function_role,
    functions,
    granted,
    items,
    keys_granted,
    of_type,
    own_key,
    personal_policies,
    queues_read_by,
    reference,
    roles,
    services_granted,
    statements,
    target,
    texts,
    variables,
)
from roundsman.testing.stack.template import Document, Json, mapping_of

REPLY_QUEUES_OF_APPLICATIONS = (
    "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-reply-*"
)
READ_A_QUEUE = {"ReceiveMessage", "DeleteMessage", "GetQueueAttributes"}
HIDE = {"ChangeMessageVisibility"}
"""Of the scheduler and submission only: they hide for longer what was throttled."""
SEND = {"SendMessage"}
CHANGE_A_TASK = {"BatchGetItem", "GetItem", "PutItem", "UpdateItem", "DeleteItem"}
"""An ended task is deleted if its retention is zero; nothing else is ever deleted."""
TABLE_RIGHTS: Mapping[str, Mapping[str, set[str]]] = {
    "SubmissionRole": {
        "OrdersTable": {"GetItem", "PutItem", "UpdateItem"},
        "TasksTable": CHANGE_A_TASK,
        "ControlTable": {"PutItem"},
    },
    "SchedulerRole": {
        "OrdersTable": {"BatchGetItem", "GetItem", "UpdateItem"},
        "TasksTable": CHANGE_A_TASK,
        "ControlTable": {"GetItem", "UpdateItem"},
        "HistoryTable": {"PutItem", "Query", "UpdateItem"},
    },
    "SupervisorRole": {
        "OrdersTable": {"GetItem", "UpdateItem"},
        "TasksTable": CHANGE_A_TASK,
        "TasksTable/index/due": {"Query"},
        "TasksTable/index/failures": {"Query"},
        "ControlTable": {"GetItem", "PutItem", "UpdateItem"},
        "HistoryTable": {"PutItem", "Query"},
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
    "lambda:GetAccountSettings",
    "lambda:ListEventSourceMappings",
}
"""Actions for which AWS has no resource."""
READS = re.compile(
    r"\w+:((Describe|Get|List)\w+|BatchGetItem|Query|Scan|Decrypt"
    r"|ReceiveMessage|ChangeMessageVisibility)"
)
"""The actions of a viewer. The last two look at a message and let it be seen again."""
LIMITS = ("dynamodb:LeadingKeys", "dynamodb:Attributes")
ENGINE_SERVICES = {"sqs", "dynamodb", "logs", "sns", "kms", "xray"}
TRACE = ["xray:PutTraceSegments"]
TRACED_SHARE = "TRACING_SAMPLE_PERCENT"
HEARTBEAT, HEARTBEAT_ROLE = "AlertHeartbeat", "AlertHeartbeatRole"
OF_A_CREDENTIAL: Json = {
    "StringLike": {
        "kms:ViaService": ["secretsmanager.*.amazonaws.com", "ssm.*.amazonaws.com"],
    }
}
NETWORK_INTERFACES = {
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
}
EVERY_FUNCTION = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*"
SAME_ACCOUNT: Json = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def wildcards(application: Application) -> list[str]:
    """No statement that allows has a wildcard in an action or a resource.

    The exceptions are the names of applications' reply queues, those of the agents' queues, which
    begin with the stack's name and an underscore that no other stack's name has, traces, for which
    X-Ray has no resource, a key's own policy, in which '*' is that key, and the network interfaces
    of a function in a VPC, for which EC2 has no resource (`network_rights`). The policies for
    people also name what the agents' stacks make, and what has no resource in AWS. A policy with
    NotAction or NotResource allows all but what it names.
    """
    problems, people = [], personal_policies(application.template)
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
        is_key = owner in of_type(application.template, "AWS::KMS::Key")
        is_traced = texts(at(statement, "Action")) == TRACE
        if is_key or is_traced or _is_of_network(statement):
            continue
        if owner in people and set(texts(at(statement, "Action"))) <= WITHOUT_A_RESOURCE:
            continue
        patterns = ALLOWED_PATTERNS | (OF_MANY_STACKS if owner in people else set())
        found = map(target, items(at(statement, "Resource")))
        problems += [
            f"{sid}: the resource {resource} has a wildcard"
            for resource in found
            if "*" in resource and resource not in patterns
        ]
    return problems


def read_policies(application: Application) -> list[str]:
    """Every statement that allows something is in a policy that the other rules read.

    Those are the policies of roles, those added to roles, and those of queues, topics and keys. Who
    may assume a role is no right.
    """
    read = [statement for _, statement in every_statement(application.template)]
    return [
        f"{name}: a policy of this kind of resource is not read by any rule"
        for name, resource in mapping_of(application.template.get("Resources")).items()
        for statement in _grants(application.template, resource)
        if statement not in read
    ]


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


def managed_policies(application: Application) -> list[str]:
    """No role has a managed policy of AWS: these name no resource."""
    return [
        f"{name}: ManagedPolicyArns must be left out"
        for name, role in roles(application.template).items()
        if "ManagedPolicyArns" in role
    ]


def policies_for_people(application: Application) -> list[str]:
    """The stack has the policies for people and applications, without a name and given to nobody.

    A viewer's policy changes nothing. What the others write in a table is limited to rows or to
    attributes.
    """
    template, problems = application.template, list[str]()
    policies = of_type(template, "AWS::IAM::ManagedPolicy")
    problems += [f"{name} is missing" for name in PERSONAL_POLICIES if name not in policies]
    for name in personal_policies(template):
        problems += [
            f"{name}: {key} must be left out"
            for key in ("Groups", "ManagedPolicyName", "Roles", "Users")
            if key in policies[name]
        ]
    for name, statement in every_statement(template):
        if name not in PERSONAL_POLICIES:
            continue
        writes = [one for one in texts(at(statement, "Action")) if not READS.fullmatch(one)]
        if writes and name == "ViewerPolicy":
            problems.append(f"{name}: it may not do {', '.join(writes)}")
        condition = json.dumps(statement.get("Condition"))
        if any(one.startswith("dynamodb:") for one in writes) and not any(
            limit in condition for limit in LIMITS
        ):
            problems.append(f"{name}: {statement.get('Sid')} needs {' or '.join(LIMITS)}")
    return problems


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

    The supervisor may also count the messages of the queues that the scheduler reads. Submission
    and the scheduler may also hide what they read for longer.
    """
    template, problems = application.template, list[str]()
    counted = queues_read_by(template, "SchedulerFunction")
    requests = {queue for agent in agents(template) for queue in agent.request_queues}
    sends = {
        "SubmissionRole": {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS},
        "SchedulerRole": {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS} | requests,
        "SupervisorRole": {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS},
    } | {agent.role: {agent.reply_queue} for agent in agents(template)}
    for function in functions(template):
        role, reads = function_role(function), queues_read_by(template, function)
        hides = HIDE if role in ("SubmissionRole", "SchedulerRole") else set[str]()
        expected = dict.fromkeys(reads, READ_A_QUEUE | hides)
        if function == "SupervisorFunction":
            expected = {queue: {"GetQueueAttributes"} for queue in counted}
        set_aside = {dead_letters_of(template, queue) for queue in reads}
        if function != "SupervisorFunction":  # it reads no messages
            set_aside |= {"RejectedQueue"}
        for queue in sends.get(role, set()) | set_aside:
            expected[queue] = expected.get(queue, set()) | SEND
        problems += compare_rights(role, granted(template, role, "sqs"), expected)
    return problems


def engine_services(application: Application) -> list[str]:
    """The functions of the engine may call SQS, DynamoDB, SNS, KMS, X-Ray and their logs.

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


def _rows(agent: TemplateAgent) -> dict[str, set[str]]:
    circuit = f"breaker#{agent.name}"
    rate, calls = f"rate#{agent.name}", f"calls#{agent.name}#*"
    return {
        "GetItem": {"holds", circuit},
        "UpdateItem": {"marks", "holds", circuit, rate, calls},
        "PutItem": {circuit},
    }


def group_rows(application: Application) -> list[str]:
    """In ControlTable the scheduler may update the failure groups and the read marks only, and the
    supervisor also the list of bulk runs."""
    return _control_rows(
        application,
        "UpdateItem",
        {"SchedulerRole": ("groups", "marks"), "SupervisorRole": ("bulk", "groups", "marks")},
    )


def plan_and_lease_rows(application: Application) -> list[str]:
    """In ControlTable submission may put plans only, and the supervisor its leases and the progress
    of bulk runs only."""
    return _control_rows(
        application,
        "PutItem",
        {"SubmissionRole": ("plan#*",), "SupervisorRole": ("bulk#*", "leases")},
    )


def _control_rows(
    application: Application, action: str, expected: Mapping[str, tuple[str, ...]]
) -> list[str]:
    return [
        f"{role}: the rows of ControlTable for {action} must be {' and '.join(rows)}"
        for role, rows in expected.items()
        if keys_granted(application.template, role, action, "ControlTable") != set(rows)
    ]


def alert_rights(application: Application) -> list[str]:
    """All functions but submission may publish alerts, and use the alert topic's key for it, and so
    may the schedule of the heartbeat."""
    template, problems = application.template, list[str]()
    may = {function_role(name) for name in functions(template)} - {"SubmissionRole"}
    may |= {HEARTBEAT_ROLE}
    for role in roles(template):
        alerts = role in may
        topic = {"AlertTopic": {"Publish"}} if alerts else {}
        key = {"AlertKey": {"GenerateDataKey", "Decrypt"}} if alerts else {}
        keys = granted(template, role, "kms")
        for statement in allowed_to(template, role):  # the rule of credentials is about the other
            if statement.get("Condition") == OF_A_CREDENTIAL:
                keys.pop(target(at(statement, "Resource")), None)
        problems += compare_rights(role, granted(template, role, "sns"), topic)
        for other in (own_key(template), former_key(template)):
            keys.pop(
                target(other), None
            )  # the rules `key_rights` and `former_key_rights` are for it
        problems += compare_rights(role, keys, key)
    return problems


def credential_rights(application: Application) -> list[str]:
    """A role may read the secret or parameter that is its agent's Credential, and no other.

    It may use a key to decrypt only if it has a credential, and only through the service that
    stores it.
    """
    template, problems = application.template, list[str]()
    own = {agent.role: variables(template, agent.function) for agent in agents(template)}
    for role in roles(template):
        credential = own.get(role, {}).get("CREDENTIAL", "")
        for service, action in (("secretsmanager", "GetSecretValue"), ("ssm", "GetParameter")):
            expected = {target(credential): {action}} if credential != "" else {}
            problems += compare_rights(role, granted(template, role, service), expected)
        for statement in allowed_to(template, role):
            if statement.get("Condition") != OF_A_CREDENTIAL:
                continue
            if credential == "" or texts(at(statement, "Action")) != ["kms:Decrypt"]:
                problems.append(f"{role}: it may use CredentialKey only to decrypt its Credential")
    return problems


def network_rights(application: Application) -> list[str]:
    """Only the role of a function in a VPC may handle network interfaces: Lambda does it with that
    role, and a denial keeps the function's code from it (AWS Lambda Developer Guide, "Giving Lambda
    functions access to resources in an Amazon VPC").
    """
    template, problems = application.template, list[str]()
    for name, function in functions(template).items():
        role = function_role(name)
        network = chosen(template, at(function, "VpcConfig"))
        about = [s for s in allowed_to(template, role) if _names_ec2(s)]
        wanted = ["Allow", "Deny"] if network not in (None, NO_VALUE) else []
        found = [at(s, "Effect") for s in about if _is_of_network(s)]
        if found != wanted or len(found) != len(about):
            problems.append(
                f"{role}: it may handle network interfaces exactly if its function is in a VPC, "
                "and the function's own code never"
            )
    return problems


def _names_ec2(statement: Document) -> bool:
    return any(action.startswith("ec2:") for action in texts(at(statement, "Action")))


def _is_of_network(statement: Document) -> bool:
    denied = at(statement, "Condition", "ArnLike", "lambda:SourceFunctionArn", "Fn::Sub")
    if at(statement, "Effect") == "Deny" and denied != EVERY_FUNCTION:
        return False
    if at(statement, "Effect") == "Allow" and "Condition" in statement:
        return False
    return set(texts(at(statement, "Action"))) == NETWORK_INTERFACES


def log_rights(application: Application) -> list[str]:
    """Every function may write to its own log group and to no other."""
    template, problems = application.template, list[str]()
    for function in functions(template):
        role = function_role(function)
        own = {f"{function.removesuffix('Function')}Logs": {"CreateLogStream", "PutLogEvents"}}
        problems += compare_rights(role, granted(template, role, "logs"), own)
    return problems


def trace_rights(application: Application) -> list[str]:
    """Every function may send traces to X-Ray where orders are traced, and only there.

    The right is in a policy with a condition, and the function knows the sampled percentage.
    """
    template, problems = application.template, list[str]()
    resources = mapping_of(template.get("Resources"))
    for function in functions(template):
        role = function_role(function)
        traced = {
            name: policy
            for name, policy in added_policies(template, role).items()
            if TRACE
            in [texts(at(one, "Action")) for one in statements(at(policy, "PolicyDocument"))]
        }
        allowed = granted(template, role, "xray")
        if allowed != {"*": {"PutTraceSegments"}} or not traced:
            problems.append(f"{role}: a policy must be added that allows just {TRACE[0]}")
        problems += [
            f"{name}: needs a condition, so that it exists only where orders are traced"
            for name in traced
            if not at(resources.get(name), "Condition")
        ]
        if TRACED_SHARE not in variables(template, function):
            problems.append(f"{function}: needs the variable {TRACED_SHARE}")
    return problems


def schedule_roles(application: Application) -> list[str]:
    """The role of a schedule may invoke the schedule's target and do nothing else; only EventBridge
    Scheduler of this account may take it (AWS's advice against the confused deputy).
    """
    template, problems = application.template, list[str]()
    for name, schedule in of_type(template, "AWS::Scheduler::Schedule").items():
        role = reference(at(schedule, "Target", "RoleArn"))
        aim = reference(at(schedule, "Target", "Arn"))
        if name == HEARTBEAT:  # its role is that of `alert_rights`, which publishes alerts
            if role != HEARTBEAT_ROLE or services_granted(template, role) != {"sns", "kms"}:
                problems.append(f"{name}: its role must be {HEARTBEAT_ROLE}, for sns and kms alone")
            problems += _trust(template, role)
            continue
        known = {*functions(template), *aliases(template)}
        action = "lambda:InvokeFunction" if aim in known else "sqs:SendMessage"
        found = [
            (
                at(one, "Effect"),
                texts(at(one, "Action")),
                [*map(target, items(at(one, "Resource")))],
            )
            for one in allowed_to(template, role)
            if items(at(one, "Resource")) != [own_key(template)]  # see `key_rights`
        ]
        set_aside = reference(at(schedule, "Target", "DeadLetterConfig", "Arn"))
        aims = [aim, set_aside] if set_aside else [aim]
        if found != [("Allow", [action], aims)]:
            problems.append(f"{name}: its role may do {action} on {', '.join(aims)}, and no more")
        problems += _trust(template, role)
    return problems


def _trust(template: Document, role: str) -> list[str]:
    trust = statements(at(roles(template).get(role), "AssumeRolePolicyDocument"))
    wanted = [({"Service": "scheduler.amazonaws.com"}, SAME_ACCOUNT)]
    if [(at(one, "Principal"), at(one, "Condition")) for one in trust] != wanted:
        return [f"{role}: only scheduler.amazonaws.com of this account may take it"]
    return []


def alert_encryption(application: Application) -> list[str]:
    """Alerts are encrypted under a key of the stack, which is rotated, and which alarms may use.

    CloudWatch cannot publish to a topic under the key that AWS manages for SNS.
    """
    template, problems = application.template, list[str]()
    topic = of_type(template, "AWS::SNS::Topic").get("AlertTopic")
    key = of_type(template, "AWS::KMS::Key").get("AlertKey")
    if {"Fn::GetAtt": ["AlertKey", "Arn"]} not in items(at(topic, "KmsMasterKeyId", "Fn::If")):
        problems.append("AlertTopic: KmsMasterKeyId must be AlertKey, without a key of one's own")
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
    policies_for_people,
    statement_ids,
    function_roles,
    table_rights,
    queue_rights,
    engine_services,
    agent_rows,
    group_rows,
    plan_and_lease_rows,
    alert_rights,
    credential_rights,
    network_rights,
    log_rights,
    trace_rights,
    schedule_roles,
    alert_encryption,
    alert_transport,
)
