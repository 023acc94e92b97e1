"""Evaluates the policy of a resource by the rules of IAM, for a request with its condition keys.

The rules that matter here, of AWS's documentation of condition operators: each operator and each
key must match; of the values of a key one must, or none for a negated operator. If the request does
not have the key, an operator does not match, a negated one does, and one with `IfExists` does. The
parts of an ARN are compared one by one. A Deny counts before every Allow, and without an Allow, of
this policy or, for a principal of the same account, of its own, nothing is allowed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from roundsman_dev.check.reading import items
from roundsman_dev.template import Document, Json, mapping_of
from tests.support.template_reading import texts

ARN_PARTS = 6


@dataclass(frozen=True)
class Request:
    """A call, as IAM sees it."""

    action: str
    resource: str
    keys: Mapping[str, str] = field(default_factory=dict)
    """The condition keys that the request has."""
    service: str = ""
    """The service principal that makes the call; empty for a role, a user, or nobody."""
    own_policy_allows: bool = False
    """Whether a policy of the principal's own, in the account of the resource, allows the call."""


def is_allowed(policy: Document, request: Request) -> bool:
    """Whether the policy of the resource, and the principal's own, let a request pass."""
    found = [
        str(statement["Effect"])
        for statement in map(mapping_of, items(policy["Statement"]))
        if _applies(statement, request)
    ]
    return "Deny" not in found and ("Allow" in found or request.own_policy_allows)


def _applies(statement: Document, request: Request) -> bool:
    conditions = mapping_of(statement.get("Condition", {}))
    return (
        _is_meant(statement["Principal"], request)
        and any(_like(one, request.action, ":") for one in texts(statement["Action"]))
        and any(one in ("*", request.resource) for one in texts(statement["Resource"]))
        and all(
            _matches(operator, values, request.keys.get(key))
            for operator, keys in conditions.items()
            for key, values in mapping_of(keys).items()
        )
    )


def _is_meant(principal: Json, request: Request) -> bool:
    if principal == "*":
        return True
    return request.service in texts(mapping_of(principal).get("Service"))


def _matches(operator: str, values: Json, given: str | None) -> bool:
    plain = operator.removesuffix("IfExists")
    negated = "Not" in plain
    if given is None:
        return negated or operator != plain
    return any(_is_equal(plain.replace("Not", ""), one, given) for one in texts(values)) != negated


def _is_equal(operator: str, value: str, given: str) -> bool:
    match operator:
        case "Bool":
            return value.lower() == given.lower()
        case "StringEquals":
            return value == given
        case "ArnLike" | "ArnEquals":  # AWS documents that they are the same
            return _like(value, given, ":")
        case _:
            raise ValueError(f"the operator {operator} is not known here")


def _like(pattern: str, text: str, between: str) -> bool:
    """Whether a text is like a pattern, each of the parts of an ARN for itself."""
    wanted, given = (one.split(between, ARN_PARTS - 1) for one in (pattern, text))
    return len(wanted) == len(given) and all(
        re.fullmatch(re.escape(one).replace(r"\*", ".*").replace(r"\?", "."), other)
        for one, other in zip(wanted, given, strict=True)
    )
