"""Queues of our stacks: no message is lost, too large, or redelivered while it is handled."""

from roundsman_dev.check.interface import REPLY_PREFIX
from roundsman_dev.check.reading import (
    STACK,
    agents,
    at,
    chosen,
    items,
    mappings_in,
    of_type,
    queues,
    reference,
    variables,
)
from roundsman_dev.template import Document, Json
from roundsman_testing.world.queues import (
    COMMANDS,
    MOST_RECEIVES,
    ORDERS,
    REPLIES,
    REQUESTS,
    VISIBILITY,
)
from tests.support.template_reading import (
    QUEUE_ARN,
    THIS_ACCOUNT,
    dead_letter_queues,
    dead_letters_of,
    excepted,
    queues_read_by,
    statements,
    texts,
    work_queues,
)
from tests.template.conftest import nested_template
from tests.template.faults import Fault, arn, drop, fails_with, put, ref, remove, sub

FOURTEEN_DAYS = 14 * 24 * 3600
LARGEST_MESSAGE = 1024 * 1024
LONGEST_STACK_NAME, LONGEST_QUEUE_NAME = 32, 80
RECEIVES_IN_THREE_HOURS = 180  # at the default visibility timeout of 60 s
ENGINE_QUEUES = {"SubmissionQueue", "SchedulerQueue", "RejectedQueue"}

LONG_NAME = "Gift" * 12
QUEUE: Document = {"Type": "AWS::SQS::Queue", "Properties": {}}
NAMED: Document = {
    "Type": "AWS::SQS::Queue",
    "Properties": {"QueueName": sub(f"{STACK}_{LONG_NAME}")},
}
WITHOUT_TLS: Document = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
FROM_ANOTHER_ACCOUNT: Document = {
    "Effect": "Allow",
    "Principal": "*",
    "Action": "sqs:SendMessage",
    "Condition": {"ArnLike": {"aws:PrincipalArn": ["arn:aws:iam::1:*"]}},
}


@fails_with(
    drop("Resources/BillingUrgentRequestQueue"),
    drop("Resources/RejectedQueue"),
    put("Resources/StrayQueue", QUEUE),
)
def test_the_queues_are_three_of_the_engine_and_three_of_each_agent(template: Document) -> None:
    found = agents(template)
    of_agents = {queue for one in found for queue in (*one.request_queues, one.reply_queue)}
    assert set(queues(template)) - set(dead_letter_queues(template)) == of_agents | ENGINE_QUEUES


@fails_with(
    drop("GiftWrapRequestQueue/RedrivePolicy"),
    drop("Resources/GiftWrapReplyDeadLetterQueue"),
    put("BillingReplyQueue/RedrivePolicy/deadLetterTargetArn", arn("LettersReplyDeadLetterQueue")),
)
def test_each_queue_that_is_read_has_a_dead_letter_queue_of_its_own(template: Document) -> None:
    """With a shared one, nobody can know where a dead letter is to be sent back to."""
    used = [dead_letters_of(template, name) for name in work_queues(template)]
    assert sorted(used) == sorted(dead_letter_queues(template))


@fails_with(
    put("LettersRequestQueue/RedrivePolicy/maxReceiveCount", 4),
    put("LettersReplyQueue/RedrivePolicy/maxReceiveCount", 5),
)
def test_requests_are_given_up_after_max_receive_count_and_all_else_after_three_hours(
    template: Document,
) -> None:
    """In three hours a throttled table or a failed deployment ends. The scheduler and submission
    give up after MaxReceiveCount what fails for a reason of its own."""
    requests = {queue for agent in agents(template) for queue in agent.request_queues}
    count = variables(template, "SchedulerFunction").get("MAX_RECEIVE_COUNT")
    for name, queue in work_queues(template).items():
        wanted = count if name in requests else RECEIVES_IN_THREE_HOURS
        assert at(queue, "RedrivePolicy", "maxReceiveCount") == wanted, name


@fails_with(
    put("SchedulerFunction/Environment/Variables/VISIBILITY_SECONDS", 10),
    put("SubmissionQueue/VisibilityTimeout", 300),
)
def test_a_function_that_hides_what_was_throttled_knows_how_long_its_queues_hide_a_message(
    template: Document,
) -> None:
    """It hides a message for less than twice that time: a timeout of a step is counted only when no
    reply can be hidden any more."""
    for function in ("SubmissionFunction", "SchedulerFunction"):
        known = variables(template, function).get("VISIBILITY_SECONDS")
        for queue in queues_read_by(template, function):
            assert known == at(queues(template).get(queue), "VisibilityTimeout"), queue


@fails_with(
    put("BillingReplyDeadLetterQueue/RedriveAllowPolicy/redrivePermission", "allowAll"),
    put(
        "BillingReplyDeadLetterQueue/RedriveAllowPolicy/sourceQueueArns",
        [sub(f"{QUEUE_ARN}{STACK}_LettersReplyQueue")],
    ),
)
def test_a_dead_letter_queue_accepts_the_messages_of_its_own_queue_only(template: Document) -> None:
    """The command line sends a dead letter back to the queue that it came from."""
    for name, queue in work_queues(template).items():
        allowed = at(queues(template).get(dead_letters_of(template, name)), "RedriveAllowPolicy")
        assert at(allowed, "redrivePermission") == "byQueue", name
        arns = [at(one, "Fn::Sub") for one in mappings_in(at(allowed, "sourceQueueArns"))]
        assert arns == [f"{QUEUE_ARN}{at(queue, 'QueueName', 'Fn::Sub')}"]


@fails_with(
    put("GiftWrapReplyDeadLetterQueue/MessageRetentionPeriod", 345600),
    drop("RejectedQueue/MessageRetentionPeriod"),
)
def test_what_no_function_reads_is_kept_for_14_days_the_longest_that_sqs_allows(
    template: Document,
) -> None:
    for name in [*dead_letter_queues(template), "RejectedQueue"]:
        queue = queues(template).get(name)
        assert at(queue, "MessageRetentionPeriod") == FOURTEEN_DAYS, name


@fails_with(
    put("LettersReplyQueue/MessageRetentionPeriod", 1209600),
    drop("LettersReplyQueue/MessageRetentionPeriod"),
)
def test_a_queue_keeps_messages_for_at_most_half_as_long_as_its_dead_letters(
    template: Document,
) -> None:
    """A message in a standard queue keeps the time of its first sending when it moves to the
    dead-letter queue, so the time in the first queue is taken from the 14 days (Amazon SQS
    Developer Guide, "Message retention periods for dead-letter queues")."""
    for name, queue in work_queues(template).items():
        kept = at(queue, "MessageRetentionPeriod")
        assert isinstance(kept, int), name
        assert kept <= FOURTEEN_DAYS // 2, name


@fails_with(put("WarehouseRequestQueue/MaximumMessageSize", 262144))
def test_every_queue_takes_the_largest_messages_of_sqs(template: Document) -> None:
    """A request carries the order and the results so far; a dead letter is as large as it was."""
    for name, queue in queues(template).items():
        assert at(queue, "MaximumMessageSize") == LARGEST_MESSAGE, name


OVER_TLS = "QueuesAnswerOverTlsOnly/PolicyDocument/Statement"


@fails_with(
    remove("GiftWrapQueuesAnswerOverTlsOnly/Queues", ref("GiftWrapRequestQueue")),
    put(f"{OVER_TLS}/0/Action", "sqs:SendMessage"),
    put(f"{OVER_TLS}/0/Condition", {"Bool": {"aws:SecureTransport": "true"}}),
    put(OVER_TLS, [WITHOUT_TLS, {"Effect": "Allow", "Principal": "*"}]),
)
def test_every_queue_refuses_a_call_without_tls(template: Document) -> None:
    covered = []
    for name, policy in of_type(template, "AWS::SQS::QueuePolicy").items():
        denied, *others = statements(at(policy, "PolicyDocument"))
        assert {key: denied.get(key) for key in WITHOUT_TLS} == WITHOUT_TLS, name
        assert all(map(_is_about_senders, others)), name
        covered += [reference(queue) for queue in items(at(policy, "Queues"))]
    assert sorted(covered) == sorted(queues(template))  # SQS keeps one policy of a queue


SENDERS_OF_COMMANDS = ("SubmissionRole", "SchedulerRole", "SupervisorRole")


def takes_messages_of(policy: str, *principals: Json) -> Fault:
    """Let these principals alone send to the queue of a policy."""
    found: Json = {"Fn::Split": [",", {"Fn::Join": [",", [*principals]]}]}
    condition = f"{policy}/PolicyDocument/Statement/1/Condition/ArnNotLike"
    return put(f"{condition}/aws:PrincipalArn", found)


@fails_with(
    put("SchedulerQueuePolicy/PolicyDocument/Statement", [WITHOUT_TLS]),
    put("SchedulerQueuePolicy/PolicyDocument/Statement", [WITHOUT_TLS, FROM_ANOTHER_ACCOUNT]),
    put("GiftWrapReplyQueuePolicy/Queues", []),
    put("GiftWrapReplyQueuePolicy/Queues", [ref("SchedulerQueue")]),
    takes_messages_of("GiftWrapReplyQueuePolicy", THIS_ACCOUNT[0]),
    takes_messages_of("SubmissionQueuePolicy", arn("SupervisorRole")),
    takes_messages_of("SchedulerQueuePolicy", "*", *map(arn, SENDERS_OF_COMMANDS)),
)
def test_orders_commands_and_replies_are_taken_from_known_principals_only(
    template: Document,
) -> None:
    """Whatever rights others have, a Deny excepts the functions that send there, and the principals
    of a parameter, which is empty by default and stands for this account."""
    expected = {
        "SubmissionQueue": {"RecurringOrderRole"},
        "SchedulerQueue": {*SENDERS_OF_COMMANDS},
    } | {agent.reply_queue: {agent.role} for agent in agents(template)}
    of_queue = dict[str, list[Document]]()
    for policy in of_type(template, "AWS::SQS::QueuePolicy").values():
        found = [*filter(_is_about_senders, statements(at(policy, "PolicyDocument")))]
        about = [reference(queue) for queue in items(at(policy, "Queues"))]
        of_queue |= dict.fromkeys(about, found)
        # Submitters may also be of another account, for SubmissionQueue only.
        allowing = [one for one in found if at(one, "Effect") == "Allow"]
        assert not allowing or about == ["SubmissionQueue"]
    for queue, senders in expected.items():
        denied = [
            one
            for one in of_queue.get(queue, [])
            if (at(one, "Effect"), at(one, "Principal")) == ("Deny", "*")
        ]
        assert len(denied) == 1, queue
        known = excepted(denied[0])
        assert {reference(branch) for one in known for branch in _branches(one)} - {""} == senders
        others = [chosen(template, one) for one in known if not reference(one)]
        strangers = [one for one in others if not (reference(one) or one in THIS_ACCOUNT)]
        assert all(str(one).startswith("arn:") for one in strangers), queue


def _branches(value: Json) -> list[Json]:
    match value:
        case {"Fn::If": [str(), yes, no]}:
            return [yes, no]
        case _:
            return [value]


NO_SERVICE: Document = {"BoolIfExists": {"aws:PrincipalIsAWSService": "false"}}


def _is_about_senders(statement: Document) -> bool:
    """Whether a statement only refuses sending, or allows it, by the ARN of the principal."""
    operator = "ArnNotLike" if at(statement, "Effect") == "Deny" else "ArnLike"
    known = at(statement, "Condition", operator)
    if at(statement, "Principal", "Service") is not None:
        # tests/template/test_event_sources.py judges what is said of services.
        return texts(at(statement, "Action")) == ["sqs:SendMessage"]
    return (
        texts(at(statement, "Action")) == ["sqs:SendMessage"]
        and at(statement, "Principal") == "*"
        and isinstance(known, dict)
        and at(statement, "Condition") in ({operator: known}, {operator: known, **NO_SERVICE})
        and set(known) == {"aws:PrincipalArn"}
    )


@fails_with(
    put("BillingReplyQueue/QueueName", sub(f"{REPLY_PREFIX}billing")),
    put("BillingReplyQueue/QueueName", "BillingReplyQueue"),
    put(f"Resources/{LONG_NAME}", NAMED),
)
def test_the_name_of_a_queue_is_that_of_the_stack_and_its_logical_id(template: Document) -> None:
    """Two stacks of one account have different names so. Agents' queues have an underscore, which
    no stack's name has: a right to all of them is then for this stack alone, and an order cannot
    name a queue of the engine as its reply queue."""
    for name, queue in queues(template).items():
        between = "-" if name in ENGINE_QUEUES else "_"
        if (given := at(queue, "QueueName")) is not None:
            assert given == sub(f"{STACK}{between}{name}"), name
            assert LONGEST_STACK_NAME + len(f"-{name}") <= LONGEST_QUEUE_NAME, name


def test_the_queues_of_a_world_hide_messages_and_give_them_up_as_those_of_the_template() -> None:
    engine, agent = nested_template("engine.yaml"), nested_template("agent.yaml")
    hidden = {
        ORDERS: at(engine, "Parameters", "SubmissionVisibilitySeconds", "Default"),
        COMMANDS: at(engine, "Parameters", "SchedulerVisibilitySeconds", "Default"),
        REPLIES: at(engine, "Parameters", "SchedulerVisibilitySeconds", "Default"),
        REQUESTS: at(agent, "Parameters", "VisibilitySeconds", "Default"),
    }
    assert hidden == {queue: VISIBILITY[queue] // 1000 for queue in hidden}
    assert MOST_RECEIVES[REQUESTS] == at(engine, "Parameters", "MaxReceiveCount", "Default")
    assert {MOST_RECEIVES[queue] for queue in (ORDERS, COMMANDS, REPLIES)} == {
        RECEIVES_IN_THREE_HOURS
    }
