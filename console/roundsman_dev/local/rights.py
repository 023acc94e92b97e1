"""Enforces IAM on the local AWS: each function has only the permissions of its own role.

This module adapts the emulator in two points. template.yaml stays unchanged:

- The policies of the stack's queues and topic deny requests without TLS. So the emulator uses TLS,
  with a certificate that it creates.
- AWS authorizes a batch of messages by `sqs:SendMessage`; it has no IAM action SendMessageBatch.
  The emulator requires one. So each role that may send single messages to a queue is allowed to
  send batches to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from json import dumps
from typing import TYPE_CHECKING, cast

from roundsman_console.aws.local_record import LocalFiles, LocalRecord
from roundsman_console.aws.resources import stack_resources
from roundsman_dev.local.deploy import emulator_errors, emulator_session

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient

DEVIATION = "WhatOnlyTheEmulatorAsksFor"  # the name of the added policy
ONE, MANY = "sqs:SendMessage", "sqs:SendMessageBatch"


def enforcing(instance: LocalFiles, record: LocalRecord) -> tuple[LocalRecord, dict[str, str]]:
    """Return the record of an emulator that enforces IAM, and the environment variables for it."""
    certificate = str(instance.certificate)
    variables = {
        "AUTH": "true",
        "USE_SSL": "1",
        "AWS_CA_BUNDLE": certificate,  # the functions inherit it and trust the certificate
    }
    return replace(record, certificate=certificate), variables


def allow_batches(record: LocalRecord) -> None:
    """Allow each role of the stack to send batches to the queues to which it may send messages.

    Raises ConsoleError if the roles cannot be read or changed.
    """
    session = emulator_session(record)
    iam = session.client("iam", endpoint_url=record.endpoint)
    stacks = session.client("cloudformation", endpoint_url=record.endpoint)
    with emulator_errors():
        found = stack_resources(stacks, record.stack)
        roles = [each.physical_id for each in found if each.kind == "AWS::IAM::Role"]
        for role in roles:
            also = [{**each, "Action": MANY} for each in _statements(iam, role) if _sends(each)]
            if also:
                document = dumps({"Version": "2012-10-17", "Statement": also})
                iam.put_role_policy(RoleName=role, PolicyName=DEVIATION, PolicyDocument=document)


def _statements(iam: "IAMClient", role: str) -> Iterator[Mapping[str, object]]:
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        # The type stubs declare a string, but botocore returns the parsed object.
        yield from cast("Mapping[str, list[Mapping[str, object]]]", document)["Statement"]


def _sends(statement: Mapping[str, object]) -> bool:
    actions = statement["Action"]
    return ONE in (actions if isinstance(actions, list) else [actions])
