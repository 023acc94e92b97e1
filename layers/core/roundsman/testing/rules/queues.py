"""Queues: no message is lost, too large, readable on the way, or redelivered while handled."""

import json

from roundsman.testing.rules.application import Application, Rule, compare
from roundsman.testing.rules.reading import (
    STACK,
    agents,
    at,
    chosen,
    dead_letter_queues,
    dead_letters_of,
    items,
    mappings_in,
    of_type,
    queues,
    queues_read_by,
    reference,
    roles,
    statements,
    texts,
    variables,
    work_queues,
)
from roundsman.testing.stack.template import Document, Json, part

FOURTEEN_DAYS = 14 * 24 * 3600
LARGEST_MESSAGE = 1024 * 1024
LONGEST_STACK_NAME = 32
ENGINE_QUEUES = ("SubmissionQueue", "SchedulerQueue", "RejectedQueue")
LONGEST_QUEUE_NAME = 80
RECEIVES_IN_THREE_HOURS = 180  # at the default visibility timeout of 60 s
THIS_ACCOUNT: tuple[Json, ...] = (
    {"Fn::Sub": "arn:${AWS::Partition}:*::${AWS::AccountId}:*"},
    {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"},
)
"""Every principal of this account, and its root user."""
REPLY_PREFIX = "${AWS::StackName}-reply-"
QUEUE_ARN = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:"


def known_queues(application: Application) -> list[str]:
    """Each agent has a normal and an urgent request queue and a reply queue; the engine has
    SubmissionQueue, SchedulerQueue and RejectedQueue; there is no other queue.

    Rights, alarms and the command line find a queue by its agent's name.
    """
    template = application.template
    of_agents = [
        queue for agent in agents(template) for queue in (*agent.request_queues, agent.reply_queue)
    ]
    found = [*work_queues(template), *({"RejectedQueue"} & set(queues(template)))]
    expected = [*of_agents, "SubmissionQueue", "SchedulerQueue", "RejectedQueue"]
    return compare("the queues of the engine and its agents", found, expected)


def dead_letters(application: Application) -> list[str]:
    """Each queue that functions read has a dead-letter queue of its own.

    Without one, SQS redelivers a message that cannot be handled until its retention ends, and then
    deletes it. With a shared one, nobody can tell where a dead letter is to be sent back to.

    Requests go there after MaxReceiveCount deliveries. Orders, commands and replies go there after
    180: three hours, in which a throttled table or a failed deployment ends. The scheduler and
    submission give up after MaxReceiveCount what fails for a reason of its own.
    """
    template = application.template
    requests = {queue for agent in agents(template) for queue in agent.request_queues}
    count = variables(template, "SchedulerFunction").get("MAX_RECEIVE_COUNT")
    targets = {name: dead_letters_of(template, name) for name in work_queues(template)}
    problems = [
        f"{name} has no dead-letter queue"
        for name, found in targets.items()
        if found not in dead_letter_queues(template)
    ]
    used = [found for found in targets.values() if found]
    problems += compare(
        "the dead-letter queues that queues use", used, dead_letter_queues(template)
    )
    for name, queue in work_queues(template).items():
        wanted = count if name in requests else RECEIVES_IN_THREE_HOURS
        if at(queue, "RedrivePolicy", "maxReceiveCount") != wanted:
            said = "the engine's MaxReceiveCount" if name in requests else wanted
            problems.append(f"{name}: maxReceiveCount must be {said}")
    return problems


def known_visibility(application: Application) -> list[str]:
    """A function that hides what was throttled for longer knows how long its queues hide a message.

    It hides a message for less than twice that time: a timeout of a step is counted only when no
    reply can be hidden any more.
    """
    template = application.template
    return [
        f"{function}: VISIBILITY_SECONDS must be the VisibilityTimeout of {queue}"
        for function in ("SubmissionFunction", "SchedulerFunction")
        for queue in queues_read_by(template, function)
        if variables(template, function).get("VISIBILITY_SECONDS")
        != at(queues(template).get(queue), "VisibilityTimeout")
    ]


def dead_letter_sources(application: Application) -> list[str]:
    """A dead-letter queue accepts the messages of its own queue only (RedriveAllowPolicy).

    The command line sends a dead letter back to the queue that it came from.
    """
    template = application.template
    names = {
        dead_letters_of(template, name): at(queue, "QueueName", "Fn::Sub")
        for name, queue in work_queues(template).items()
    }
    problems = []
    for name, queue in dead_letter_queues(template).items():
        allowed = at(queue, "RedriveAllowPolicy")
        sources = mappings_in(at(allowed, "sourceQueueArns"))
        if at(allowed, "redrivePermission") != "byQueue":
            problems.append(f"{name}: redrivePermission must be byQueue")
        if [at(arn, "Fn::Sub") for arn in sources] != [f"{QUEUE_ARN}{names.get(name)}"]:
            problems.append(f"{name}: sourceQueueArns must be the one queue that it belongs to")
    return problems


def longest_retention(application: Application) -> list[str]:
    """Dead letters and rejected messages are kept for 14 days, the longest that SQS allows.

    No function reads them: a person must have the time to.
    """
    template = application.template
    return [
        f"{name}: MessageRetentionPeriod must be {FOURTEEN_DAYS} s (14 days)"
        for name in [*dead_letter_queues(template), "RejectedQueue"]
        if at(queues(template).get(name), "MessageRetentionPeriod") != FOURTEEN_DAYS
    ]


def retention(application: Application) -> list[str]:
    """A queue that functions read keeps messages for at most half as long as its dead letters.

    A message in a standard queue keeps the time of its first sending when it moves to the
    dead-letter queue, so the time in the first queue is taken from the 14 days (Amazon SQS
    Developer Guide, "Message retention periods for dead-letter queues").
    """
    return [
        f"{name}: MessageRetentionPeriod must be at most {FOURTEEN_DAYS // 2} s (7 days)"
        for name, queue in work_queues(application.template).items()
        if not _is_at_most(at(queue, "MessageRetentionPeriod"), FOURTEEN_DAYS // 2)
    ]


def _is_at_most(value: object, limit: int) -> bool:
    return isinstance(value, int) and value <= limit


def message_size(application: Application) -> list[str]:
    """Every queue takes messages of 1 MiB, the largest that SQS accepts.

    A request carries the order and the results so far; a dead letter is as large as it was.
    """
    return [
        f"{name}: MaximumMessageSize must be {LARGEST_MESSAGE}"
        for name, queue in queues(application.template).items()
        if at(queue, "MaximumMessageSize") != LARGEST_MESSAGE
    ]


def queue_encryption(application: Application) -> list[str]:
    """Every queue is encrypted at rest: by SSE-SQS where it is not by a key of one's own."""

    def is_encrypted(value: Json) -> bool:
        match value:
            case {"Fn::If": [_, {"Ref": "AWS::NoValue"}, without]}:
                return without is True
            case _:
                return value is True

    return [
        f"{name}: SqsManagedSseEnabled must be true"
        for name, queue in queues(application.template).items()
        if not is_encrypted(at(queue, "SqsManagedSseEnabled"))
    ]


def queue_transport(application: Application) -> list[str]:
    """Every queue refuses a call without TLS (aws:SecureTransport)."""
    problems, covered = [], list[str]()
    for name, policy in of_type(application.template, "AWS::SQS::QueuePolicy").items():
        found = statements(at(policy, "PolicyDocument"))
        others = [one for one in found[1:] if not _is_about_senders(one)]
        if found and _denies_without_tls(found[0], "sqs:*") and not others:
            covered += [reference(queue) for queue in items(at(policy, "Queues"))]
        else:
            problems.append(
                f"{name} must deny sqs:* to all without aws:SecureTransport, and else only say who "
                "may send"
            )
    return problems + compare(
        "the queues that refuse calls without TLS", covered, queues(application.template)
    )


def _denies_without_tls(statement: object, action: str) -> bool:
    match statement:
        case {
            "Effect": "Deny",
            "Principal": "*",
            "Action": found,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }:
            return texts(found) == [action]
        case _:
            return False


def queue_senders(application: Application) -> list[str]:
    """Orders, commands and replies are taken from known principals only, whatever rights others
    have: a Deny excepts the functions that send there, and the principals of a parameter.

    Empty, as by default, the parameter stands for this account. Submitters may also be of another
    account, for SubmissionQueue only.
    """
    template = application.template
    expected = {
        "SubmissionQueue": {"RecurringOrderRole"} & set(roles(template)),
        "SchedulerQueue": {"SubmissionRole", "SchedulerRole", "SupervisorRole"},
    } | {agent.reply_queue: {agent.role} for agent in agents(template)}
    problems, of_queue = [], dict[str, list[Document]]()
    for name, policy in of_type(template, "AWS::SQS::QueuePolicy").items():
        found = [*filter(_is_about_senders, statements(at(policy, "PolicyDocument")))]
        about = [reference(queue) for queue in items(at(policy, "Queues"))]
        for queue in about:
            if queue in of_queue:
                problems.append(f"{queue} has two policies, and SQS keeps the last one")
            of_queue[queue] = found
        if about != ["SubmissionQueue"] and any(at(one, "Effect") == "Allow" for one in found):
            problems.append(f"{name} must not allow anything")
    for queue, senders in expected.items():
        denied = [one for one in of_queue.get(queue, []) if at(one, "Effect") == "Deny"]
        known = excepted(denied[0]) if len(denied) == 1 else []
        if not known:
            problems.append(f"{queue} must refuse the messages of principals that are not known")
            continue
        named = {reference(branch) for one in known for branch in _branches(one)} - {""}
        problems += compare(f"{queue}: the roles that may send", named, senders)
        others = [chosen(template, one) for one in known if not reference(one)]
        problems += [
            f"{queue}: {json.dumps(one)} is no principal that may send"
            for one in others
            if not (reference(one) or one in THIS_ACCOUNT or str(one).startswith("arn:"))
        ]
    return problems


def excepted(denied: Document) -> list[Json]:
    """The principals that a statement excepts; empty if it does not list them."""
    match at(denied, "Condition", "ArnNotLike", "aws:PrincipalArn"):
        case {"Fn::Split": [",", {"Fn::Join": [",", list(found)]}]}:
            return found
        case _:
            return []


def _branches(value: Json) -> list[Json]:
    match value:
        case {"Fn::If": [str(), yes, no]}:
            return [yes, no]
        case _:
            return [value]


def _is_about_senders(statement: Document) -> bool:
    """Whether a statement only refuses sending, or allows it, by the ARN of the principal."""
    operator = "ArnNotLike" if at(statement, "Effect") == "Deny" else "ArnLike"
    known = at(statement, "Condition")
    return (
        texts(at(statement, "Action")) == ["sqs:SendMessage"]
        and at(statement, "Principal") == "*"
        and isinstance(known, dict)
        and set(known) == {operator}
        and set(part(known, operator)) == {"aws:PrincipalArn"}
    )


def reply_prefix(application: Application) -> list[str]:
    """No queue of the stack has a name that an application's reply queue may have.

    An order names its reply queue, and functions may send to every queue with the prefix: an order
    must not be able to name a queue of the engine.
    """
    template = application.template
    problems = []
    if at(template, "Outputs", "ReplyQueuePrefix", "Value") != {"Fn::Sub": REPLY_PREFIX}:
        problems.append(f"the output ReplyQueuePrefix must be {REPLY_PREFIX}")
    for name, queue in queues(template).items():
        # CloudFormation names a queue without QueueName after its logical id, which has no hyphen.
        if str(at(queue, "QueueName", "Fn::Sub")).startswith(REPLY_PREFIX):
            problems.append(f"{name}: its name begins as that of an application's reply queue")
    return problems


def queue_names(application: Application) -> list[str]:
    """A queue with a name has the stack's name and its logical id, in at most 80 characters.

    Two stacks of one account have different names so, and a stack's name may have 32 characters.
    The names of the agents' queues have an underscore, which no stack's name has: a right to all of
    them is then for this stack alone.
    """
    problems = []
    for name, queue in queues(application.template).items():
        given = at(queue, "QueueName")
        if given is None:
            continue
        between = "-" if name in ENGINE_QUEUES else "_"
        if given != {"Fn::Sub": f"{STACK}{between}{name}"}:
            problems.append(f"{name}: QueueName must be {STACK}{between}{name}")
        if LONGEST_STACK_NAME + len(f"-{name}") > LONGEST_QUEUE_NAME:
            problems.append(
                f"{name}: this logical id is too long for a stack's name of {LONGEST_STACK_NAME}"
            )
    return problems


RULES: tuple[Rule, ...] = (
    known_queues,
    dead_letters,
    known_visibility,
    dead_letter_sources,
    longest_retention,
    retention,
    message_size,
    queue_encryption,
    queue_transport,
    queue_senders,
    reply_prefix,
    queue_names,
)
