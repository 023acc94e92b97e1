"""Events of AWS's services: what a workflow declares can come, and comes to one workflow alone.

Otherwise the queue refuses each event, which SNS does not try again, or each becomes a rejected
message.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from roundsman.definition.service_events import From
from roundsman.ports import SOURCES_STATEMENT
from roundsman_dev.check.application import Application, Rule
from roundsman_dev.check.reading import at, mappings_in, parameters
from roundsman_dev.template import Document, Json, mapping_of, part

POLICY = "SubmissionQueuePolicy"
PARAMETER = "SubmitterSources"
SERVICES: Mapping[str, str] = {
    "topic": "sns.amazonaws.com",
    "bucket": "s3.amazonaws.com",
    "source": "events.amazonaws.com",
}
"""The service that sends the events of each kind of declaration."""
_WORDS = {"topic": "topic of SNS", "bucket": "bucket of S3", "source": "rule of EventBridge"}
_KINDS = {"sns": "topic", "s3": "bucket", "events": "source"}
_TYPES = {
    "AWS::SNS::Topic": "topic",
    "AWS::S3::Bucket": "bucket",
    "AWS::Events::Rule": "source",
}
_ARN = re.compile(r"arn:[^,:]*:(sns|s3|events):(?:[^,:]*:([0-9]{12}):)?")
"""The service of an ARN, and the account if it is written there."""
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_UNKNOWN = "unknown"


def service_events(application: Application) -> list[str]:
    """Each event that a workflow declares is of a kind of source that SubmitterSources lists, and
    no other declaration takes the same ones. All sources are of one account."""
    listed = {source.kind for source in _listed(application.template)}
    problems, seen = list[str](), dict[str, str]()
    for workflow in application.workflows:
        for declared in workflow.events:
            kind = _kind(declared)
            if not listed & {kind, "topic", _UNKNOWN}:  # a topic may pass on events of the others
                problems.append(
                    f"{workflow.name}: {declared} can never come: {PARAMETER} of the block Engine "
                    f"lists no {_WORDS[kind]}; give it there the ARN"
                )
            other = seen.setdefault(str(declared), workflow.name)
            if other != workflow.name:
                problems.append(
                    f"{workflow.name}: {declared} is declared by {other}, too, which takes every "
                    "such event: an event is one order"
                )
    if len(accounts := event_accounts(application.template)) > 1:
        problems.append(
            f"{PARAMETER} of the block Engine lists sources of the accounts "
            f"{' and '.join(accounts)}: the queue takes events of the stack's own account alone"
        )
    return problems


def event_services(template: Document) -> list[str]:
    """Return the services whose events a translated template admits as orders.

    What is known only at the deployment is left out.
    """
    listed = {source.kind for source in _listed(template)}
    return [service for kind, service in SERVICES.items() if kind in listed]


def event_accounts(template: Document) -> dict[str, list[str]]:
    """Return the kinds of source that a translated template lists of each account.

    An account that is known only at the deployment, such as AWS::AccountId, is left out.
    """
    found = dict[str, list[str]]()
    for kind, account in _listed(template):
        words = found.setdefault(account, []) if account else []
        if kind != _UNKNOWN and _WORDS[kind] not in words:
            words.append(_WORDS[kind])
    return found


def _kind(declared: From) -> str:
    return next(kind for kind in SERVICES if getattr(declared, kind) is not None)


class _Source(NamedTuple):
    kind: str
    """_UNKNOWN if it is not known."""
    account: str = ""
    """Empty if it is not written in the template."""


def _listed(template: Document) -> Iterator[_Source]:
    """Yield each source that the queue admits. A parameter may be anything."""
    policy = mapping_of(part(template, "Resources").get(POLICY, {}))
    for statement in _statements(at(policy, "Properties", "PolicyDocument", "Statement")):
        if statement.get("Sid") == SOURCES_STATEMENT:
            listed = at(statement, "Condition", "ArnLike", "aws:SourceArn")
            yield from _sources_in(template, listed)


def _statements(value: Json) -> Iterator[Document]:
    for statement in mappings_in(value):
        branches = statement.get("Fn::If")
        yield from mappings_in(branches) if isinstance(branches, list) else (statement,)


def _sources_in(template: Document, value: Json) -> Iterator[_Source]:
    match value:
        case str(text):
            for service, account in _ARN.findall(_PLACEHOLDER.sub("x", text)):
                yield _Source(_KINDS[service], account)
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            resource = mapping_of(part(template, "Resources").get(name, {}))
            is_parameter = name in parameters(template)
            kind = _UNKNOWN if is_parameter else _TYPES.get(str(resource.get("Type")), _UNKNOWN)
            yield _Source(kind)
        case dict():
            # A function: the texts among its arguments, such as those of Fn::Join.
            for inner in value.values():
                yield from _sources_in(template, inner)
        case list():
            for inner in value:
                yield from _sources_in(template, inner)
        case _:
            pass


RULES: tuple[Rule, ...] = (service_events,)
