"""The local AWS with IAM enforced: each function has the rights of its own role and no others.

Two things are other than on AWS, and are made up for here, never in template.yaml:

- The stack's queues and its topic refuse what comes without TLS, so the emulator speaks TLS here,
  with a certificate of its own making.
- AWS authorises a batch of messages by `sqs:SendMessage`, and knows no action SendMessageBatch; the
  emulator asks for one. So whoever may send one message somewhere is allowed a batch there, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from json import dumps
from typing import TYPE_CHECKING, cast

from botocore.exceptions import BotoCoreError, ClientError

from roundsman_console.local.errors import LocalError
from roundsman_console.local.stack import cloudformation_client, iam_client
from roundsman_console.local.state import LocalFiles, LocalRecord

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient

DEVIATION = "WhatOnlyTheEmulatorAsksFor"  # the added policy's name
ONE, MANY = "sqs:SendMessage", "sqs:SendMessageBatch"


def enforcing(instance: LocalFiles, record: LocalRecord) -> tuple[LocalRecord, dict[str, str]]:
    """The record of an emulator that enforces IAM, and the variables that make it do so."""
    certificate = str(instance.certificate)
    variables = {
        "AUTH": "true",
        "USE_SSL": "1",
        "AWS_CA_BUNDLE": certificate,  # which functions inherit, to trust it
    }
    return replace(record, certificate=certificate), variables


def allow_batches(record: LocalRecord) -> None:
    """Allow each role of the stack to send in batches where it may send single messages.

    Raises LocalError if its roles cannot be read or changed.
    """
    try:
        iam = iam_client(record)
        for role in _roles(record):
            also = [{**each, "Action": MANY} for each in _statements(iam, role) if _sends(each)]
            if also:
                document = dumps({"Version": "2012-10-17", "Statement": also})
                iam.put_role_policy(RoleName=role, PolicyName=DEVIATION, PolicyDocument=document)
    except (BotoCoreError, ClientError) as error:
        raise LocalError(f"The roles of {record.stack} cannot be changed: {error}") from error


def _roles(record: LocalRecord) -> Iterator[str]:
    pages = cloudformation_client(record).get_paginator("list_stack_resources")
    for page in pages.paginate(StackName=record.stack):
        for resource in page["StackResourceSummaries"]:
            if resource["ResourceType"] == "AWS::IAM::Role":
                yield resource["PhysicalResourceId"]


def _statements(iam: "IAMClient", role: str) -> Iterator[Mapping[str, object]]:
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        # Its types say text; botocore has read it as the object that it is.
        yield from cast("Mapping[str, list[Mapping[str, object]]]", document)["Statement"]


def _sends(statement: Mapping[str, object]) -> bool:
    actions = statement["Action"]
    return ONE in (actions if isinstance(actions, list) else [actions])
