"""Which rights grow between two versions of a stack's resources.

A right is one action on one resource for one holder, under one condition. It has grown if an
`Allow` has it now and none had it before, or if a `Deny` that refused it is gone.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from roundsman_dev.changes.values import NOTHING, mapping_of
from roundsman_dev.nested_stacks import Document, Json

ALLOW, DENY = "Allow", "Deny"
_RESOURCE_POLICIES: Mapping[str, tuple[str, str]] = {
    "AWS::SQS::QueuePolicy": ("PolicyDocument", "Queues"),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", "Topics"),
    "AWS::S3::BucketPolicy": ("PolicyDocument", "Bucket"),
    "AWS::SecretsManager::ResourcePolicy": ("ResourcePolicy", "SecretId"),
    "AWS::KMS::Key": ("KeyPolicy", ""),
}
"""The property with the policy, and the one with what it applies to."""
_HOLDERS = ("Roles", "Users", "Groups", "RoleName", "UserName", "GroupName")
_OWN_NAMES = frozenset({"AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group"})
"""Where a property such as `RoleName` is the resource's own name."""
_ALL_BUT = "all but "


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One action on one resource."""

    holder: str
    """Who has it: the name of a role or policy; of a resource's policy, what it applies to."""
    principal: str
    """Whom a resource's policy or a role's trust names; empty for the rights of a role."""
    effect: str
    """`Allow`, or `Deny`, which refuses it."""
    action: str
    resource: str
    condition: str = ""
    """As JSON; empty for none."""

    def covers(self, other: "Right") -> bool:
        """Whether whoever has this right has the other one too."""
        return (
            (self.holder, self.effect) == (other.holder, other.effect)
            and self.condition in ("", other.condition)
            and self.principal in ("*", other.principal)
            and _covers(self.action.lower(), other.action.lower())
            and _covers(self.resource, other.resource)
        )


def grown(before: Iterable[Right], after: Iterable[Right]) -> list[Right]:
    """Return what is allowed now and was not before, and each refusal (`Deny`) that is gone.

    A right that is only written in another way may be among them, since no condition is read; one
    that has grown never is missing.
    """
    old, new = set(before), set(after)
    more = [one for one in new if one.effect == ALLOW and not _covered(one, old)]
    gone = [one for one in old if one.effect == DENY and not _covered(one, new)]
    return sorted(more + gone)


def _covered(right: Right, by: set[Right]) -> bool:
    return right in by or any(one.covers(right) for one in by)


def _covers(wide: str, narrow: str) -> bool:
    if wide == narrow:
        return True
    # Who may do all but s3:* may do less than who may do all but s3:Get*.
    return not wide.startswith(_ALL_BUT) and _pattern(wide).fullmatch(narrow) is not None


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # A ? of the wider text is one character, which a * of the narrower one need not be.
    parts = (".*" if each == "*" else "[^*]" if each == "?" else re.escape(each) for each in text)
    return re.compile("".join(parts), re.DOTALL)


def rights_of(resources: Mapping[str, Document]) -> list[Right]:
    """Return the rights that the resources of a template give, whose values are put in."""
    return [right for name, body in resources.items() for right in _of_resource(name, body)]


def _of_resource(name: str, body: Document) -> Iterator[Right]:
    kind, properties = str(body.get("Type", "")), mapping_of(body.get("Properties"))
    if kind == "AWS::IAM::Role":
        trust = mapping_of(properties.get("AssumeRolePolicyDocument"))
        yield from _statements(name, trust)
    if kind.startswith("AWS::IAM::"):
        attached = () if kind in _OWN_NAMES else _HOLDERS
        holders = [
            _plain(_text(one)) for place in attached for one in _items(properties.get(place))
        ]
        for holder in holders or [name]:
            yield from _statements(holder, mapping_of(properties.get("PolicyDocument")))
            for policy in _items(properties.get("Policies")):
                yield from _statements(holder, mapping_of(mapping_of(policy).get("PolicyDocument")))
        for arn in _items(properties.get("ManagedPolicyArns")):
            yield Right(name, "", ALLOW, "all of the managed policy", _text(arn))
        if holders and kind == "AWS::IAM::ManagedPolicy":
            yield from _statements(name, mapping_of(properties.get("PolicyDocument")))
    elif kind in _RESOURCE_POLICIES:
        place, target = _RESOURCE_POLICIES[kind]
        targets = [_text(one) for one in _items(properties.get(target))] or [name]
        for one in targets:
            yield from _statements(_plain(one), mapping_of(properties.get(place)))
    elif kind == "AWS::Lambda::Permission":
        condition: Document = {
            place: properties[place]
            for place in ("SourceArn", "SourceAccount", "PrincipalOrgID", "EventSourceToken")
            if place in properties
        }
        yield Right(
            _plain(_text(properties.get("FunctionName"))),
            _text(properties.get("Principal")),
            ALLOW,
            _text(properties.get("Action")),
            "*",
            _text(condition) if condition else "",
        )


def _statements(holder: str, policy: Document) -> Iterator[Right]:
    for statement in _whole(policy.get("Statement")):
        condition = statement.get("Condition")
        for principal in _principals(statement):
            for action in _named(statement, "Action"):
                for resource in _named(statement, "Resource"):
                    yield Right(
                        holder,
                        principal,
                        str(statement.get("Effect", ALLOW)),
                        action,
                        resource,
                        _text(condition) if condition else "",
                    )


def _whole(written: Json) -> Iterator[Document]:
    """The statements of a policy; of a condition that is not known, those of both branches."""
    for one in _items(written):
        match one:
            case {"Fn::If": [str(), yes, no]}:
                yield from _whole([yes, no])
            case dict() if one != NOTHING:
                yield one
            case _:  # no statement
                pass


def _principals(statement: Document) -> list[str]:
    """Whom a statement names; one that names all but some is kept as one text."""
    if "NotPrincipal" in statement:
        return [f"{_ALL_BUT}{_text(statement['NotPrincipal'])}"]
    match statement.get("Principal"):
        case None:
            return [""]
        case dict(kinds):
            return [
                "*" if (kind, who) == ("AWS", "*") else f"{kind} {_text(who)}"
                for kind, named in kinds.items()
                for who in _items(named)
            ]
        case principal:
            return [_text(principal)]


def _named(statement: Document, what: str) -> list[str]:
    """The actions or resources of a statement; those of `NotAction` are kept as one text."""
    if f"Not{what}" in statement:
        return [f"{_ALL_BUT}{_text(statement[f'Not{what}'])}"]
    return [_text(one) for one in _items(statement.get(what, "*"))]


def _plain(text: str) -> str:
    """`{"Ref": "Queue"}` as `Queue`."""
    return text.removeprefix('{"Ref": "').removesuffix('"}')


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _items(value: Json) -> list[Json]:
    return [] if value is None else value if isinstance(value, list) else [value]
