"""Who may send to the SubmissionQueue, by IAM's rules: each kind of sender, with its keys."""

import json
import re
from collections.abc import Mapping
from functools import cache

import pytest

from roundsman.aws.sqs.event_sources import sources_in
from roundsman.ports import SOURCES_STATEMENT
from roundsman_dev.check.reading import items
from roundsman_dev.template import Document, Template, mapping_of, part
from tests.project import SERVICE_URLS, TEMPLATE
from tests.support.iam_rules import Request, is_allowed
from tests.template.conftest import nested_template
from tools.template_lint.resolve import ACCOUNT, REGION, resolved

OTHER = "999999999999"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:roundsman-SubmissionQueue"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"
BUCKET = "arn:aws:s3:::uploads"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/orders"
SHOP = "arn:aws:iam::111122223333:role/shop"
OPERATOR = f"arn:aws:iam::{ACCOUNT}:role/ops"

LISTED: Mapping[str, str] = {"SubmitterSources": f"{TOPIC},{BUCKET},{RULE}"}
PATTERNS: Mapping[str, str] = {
    "SubmitterSources": (
        f"arn:aws:sns:{REGION}:{ACCOUNT}:*,arn:aws:s3:::*,arn:aws:events:{REGION}:{ACCOUNT}:rule/*"
    )
}
OF_ANOTHER: Mapping[str, str] = {
    "SubmitterSources": f"arn:aws:sns:{REGION}:{OTHER}:*,arn:aws:events:{REGION}:{OTHER}:rule/*"
}
CLOSED: Mapping[str, str] = {"OperatorPrincipals": OPERATOR, "SubmitterPrincipals": SHOP}


@cache
def _policy(given: tuple[tuple[str, str], ...]) -> Document:
    settings = {f"Engine.{name}": value for name, value in given}
    template = Template.read(TEMPLATE, settings)
    document = template.translate(SERVICE_URLS)
    plain = resolved(document, template.parameter_values(SERVICE_URLS))
    found = mapping_of(part(plain, "Resources")["SubmissionQueuePolicy"])
    return mapping_of(part(found, "Properties")["PolicyDocument"])


def policy(given: Mapping[str, str]) -> Document:
    return _policy(tuple(sorted(given.items())))


def sent(service: str = "", *, own: str = "", **keys: str) -> Request:
    """A message that is sent; `keys` are condition keys of `aws:`.

    `own` is not empty if a policy of the sender's own allows it.
    """
    found = {f"aws:{name}": value for name, value in keys.items()}
    found["aws:SecureTransport"] = "true"
    if keys or service:  # a request without credentials does not have this key
        found["aws:PrincipalIsAWSService"] = "true" if service else "false"
    name = f"{service}.amazonaws.com" if service else ""
    return Request("sqs:SendMessage", QUEUE, found, name, own_policy_allows=bool(own))


def of_topic(arn: str = TOPIC, **keys: str) -> Request:
    return sent("sns", SourceArn=arn, **keys)


def of_bucket(arn: str = BUCKET, **keys: str) -> Request:
    return sent("s3", SourceArn=arn, **{"SourceAccount": ACCOUNT, **keys})


def of_rule(arn: str = RULE, **keys: str) -> Request:
    return sent("events", SourceArn=arn, **keys)


def role(arn: str, *, own: bool = True) -> Request:
    return sent(own="allows" if own else "", PrincipalArn=arn)


@pytest.mark.parametrize("given", [LISTED, PATTERNS, {**LISTED, **CLOSED}])
@pytest.mark.parametrize(
    "request_",
    [
        of_topic(),
        of_topic(SourceAccount=ACCOUNT),
        of_bucket(),
        of_rule(),
        of_rule(SourceAccount=ACCOUNT),
    ],
    ids=["topic", "topic with its account", "bucket", "rule", "rule with its account"],
)
def test_a_source_that_is_listed_may_send(given: Mapping[str, str], request_: Request) -> None:
    """SNS and EventBridge document no aws:SourceAccount: with and without it they are let in."""
    assert is_allowed(policy(given), request_)


@pytest.mark.parametrize("given", [{}, CLOSED, LISTED, PATTERNS, OF_ANOTHER])
@pytest.mark.parametrize(
    "request_",
    [
        of_topic(f"arn:aws:sns:{REGION}:{OTHER}:orders"),
        of_topic(f"arn:aws:sns:{REGION}:{OTHER}:orders", SourceAccount=OTHER),
        of_topic(SourceAccount=OTHER),
        of_bucket(SourceAccount=OTHER),
        sent("s3", SourceArn=BUCKET),
        of_rule(f"arn:aws:events:{REGION}:{OTHER}:rule/orders"),
        of_rule(SourceAccount=OTHER),
        sent("sns"),
        sent("sns", SourceAccount=ACCOUNT),
        sent("lambda", SourceArn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:x"),
        sent("scheduler", SourceArn=TOPIC, SourceAccount=ACCOUNT),
    ],
)
def test_a_service_that_acts_for_another_account_or_for_nobody_may_never_send(
    given: Mapping[str, str], request_: Request
) -> None:
    assert not is_allowed(policy(given), request_)


@pytest.mark.parametrize(
    "request_",
    [
        of_topic(f"{TOPIC}-other"),
        of_topic(f"arn:aws:sns:eu-west-1:{ACCOUNT}:orders"),
        of_bucket(f"{BUCKET}-other"),
        of_rule(f"{RULE}-other"),
        of_rule(f"arn:aws:events:{REGION}:{ACCOUNT}:rule/bus/orders"),
        sent("s3", SourceArn=TOPIC, SourceAccount=OTHER),
    ],
)
def test_a_source_that_is_not_listed_may_not_send(request_: Request) -> None:
    assert not is_allowed(policy(LISTED), request_)


@pytest.mark.parametrize("request_", [of_topic(), of_bucket(), of_rule()])
def test_without_a_list_no_source_may_send(request_: Request) -> None:
    assert not is_allowed(policy({}), request_)
    assert not is_allowed(policy(CLOSED), request_)


@pytest.mark.parametrize("given", [{}, LISTED, PATTERNS])
def test_the_list_of_sources_changes_nothing_for_roles_and_users(given: Mapping[str, str]) -> None:
    mine = f"arn:aws:iam::{ACCOUNT}:role/shop"
    assert is_allowed(policy(given), role(mine))
    assert not is_allowed(policy(given), role(mine, own=False))
    assert not is_allowed(policy(given), role(SHOP))
    closed = policy({**given, **CLOSED})
    assert not is_allowed(closed, role(mine))
    assert is_allowed(closed, role(OPERATOR))
    assert not is_allowed(closed, role(OPERATOR, own=False))
    assert is_allowed(closed, role(SHOP, own=False))


@pytest.mark.parametrize("given", [{}, LISTED, PATTERNS, {**PATTERNS, **CLOSED}])
def test_nobody_sends_without_credentials_or_with_the_source_of_another(
    given: Mapping[str, str],
) -> None:
    """A role cannot claim aws:SourceArn: it is no service, and the Allow is for services."""
    assert not is_allowed(policy(given), sent())
    stranger = "arn:aws:iam::999999999999:role/x"
    assert not is_allowed(policy(given), sent(PrincipalArn=stranger, SourceArn=TOPIC))


@pytest.mark.parametrize("request_", [of_topic(), of_bucket(), of_rule()])
def test_a_source_sends_over_tls_and_does_nothing_else(request_: Request) -> None:
    keys = {**request_.keys, "aws:SecureTransport": "false"}
    assert not is_allowed(policy(LISTED), Request(request_.action, QUEUE, keys, request_.service))
    for action in ("sqs:ReceiveMessage", "sqs:SetQueueAttributes", "sqs:PurgeQueue"):
        other = Request(action, QUEUE, request_.keys, request_.service)
        assert not is_allowed(policy(LISTED), other)


def test_the_refusal_of_a_former_release_refused_every_service() -> None:
    """What the condition on aws:PrincipalIsAWSService is for: without it a negated operator is true
    of the key that a service does not have."""
    former = json.loads(json.dumps(policy(LISTED)))
    [refusal] = [one for one in former["Statement"] if one["Sid"] == "RefusesOrdersOfOthers"]
    del refusal["Condition"]["BoolIfExists"]
    assert not is_allowed(former, of_topic())


def test_submission_reads_the_list_of_the_policy() -> None:
    assert sources_in(json.dumps(policy(LISTED))) == (TOPIC, BUCKET, RULE)
    one = policy({"SubmitterSources": TOPIC})
    assert sources_in(json.dumps(one)) == (TOPIC,)
    assert sources_in(json.dumps(policy({}))) == ()
    assert [each["Sid"] for each in map(mapping_of, items(one["Statement"]))].count(
        SOURCES_STATEMENT
    ) == 1


@pytest.mark.parametrize(
    ("value", "is_accepted"),
    [
        ("", True),
        (TOPIC, True),
        (f"{TOPIC},{BUCKET},{RULE}", True),
        (f"arn:aws-us-gov:sns:us-gov-west-1:{ACCOUNT}:shop-*", True),
        (f"arn:aws:events:{REGION}:{ACCOUNT}:rule/bus/orders", True),
        (f"{TOPIC}, {BUCKET}", False),
        ("*", False),
        ("arn:aws:sns:*:*:orders", False),
        (f"arn:aws:sns:{REGION}:{ACCOUNT}:orders:sub", False),
        (f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders", False),
        (f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/x", False),
        ("arn:aws:s3:::", False),
    ],
)
def test_the_parameter_takes_topics_buckets_and_rules_alone(value: str, is_accepted: bool) -> None:
    declared = mapping_of(part(nested_template("engine.yaml"), "Parameters")["SubmitterSources"])
    assert bool(re.fullmatch(str(declared["AllowedPattern"]), value)) is is_accepted


MOST_BYTES, MOST_CONDITIONS, MOST_STATEMENTS = 8_192, 10, 20
"""SQS's quotas of a queue's policy."""


def longest(name: str, one: str) -> str:
    """The value of a parameter with its most characters, in the shortest ARNs: these need most
    quotes around them."""
    declared = mapping_of(part(nested_template("engine.yaml"), "Parameters")[name])
    most = int(str(declared["MaxLength"]))
    count = (most + 1) // (len(one) + 1)
    text = ",".join([one] * count)
    return text + "x" * (most - len(text))


def test_the_longest_lists_fit_in_the_policy_of_a_queue() -> None:
    given = {
        "OperatorPrincipals": longest("OperatorPrincipals", "arn:aws:iam::123456789012:role/a"),
        "SubmitterPrincipals": longest("SubmitterPrincipals", "arn:aws:iam::123456789012:user/a"),
        "SubmitterSources": longest("SubmitterSources", "arn:aws:s3:::a"),
    }
    document = policy(given)
    # The names of the stack and the region may be longer than those here, and the partition.
    written = json.dumps(document, separators=(",", ":"))
    spare = (26 + 14 + 7) * written.count("arn:aws:sqs") + 100
    assert len(written) + spare <= MOST_BYTES
    statements = [mapping_of(one) for one in items(document["Statement"])]
    tests = [mapping_of(test) for one in statements for test in part(one, "Condition").values()]
    assert sum(map(len, tests)) <= MOST_CONDITIONS
    assert len(statements) <= MOST_STATEMENTS
