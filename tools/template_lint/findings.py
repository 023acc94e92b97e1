"""Findings of the linters, and the exceptions from them, each with its reason.

An exception names a rule and resources; a pattern stands for several (`*Function`). It may name
the variants of the template that it is for. An exception that excepts nothing is an error: the
finding was mended, or its resource has another name.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypedDict

KEYS = {"rule", "resources", "variants", "reason"}


class WrongException(Exception):
    """The file of exceptions has an entry of another form. The message shows it."""


class FoundByLinter(TypedDict):
    """One finding as `linters` prints it."""

    variant: str
    resource: str
    rule: str
    sentence: str


@dataclass(frozen=True, order=True)
class Finding:
    """What a linter objects to in one variant of a template."""

    file: str
    """The template that has the resource."""
    resource: str
    """Its logical id; for a policy, with a dot and the Sid of the statement."""
    rule: str
    """The rule of checkov or parliament, such as `CKV_AWS_116` or `RESOURCE_STAR`."""
    sentence: str
    variant: str

    def __str__(self) -> str:
        return f"{self.file} ({self.variant}): {self.resource}: {self.rule}: {self.sentence}"


@dataclass(frozen=True)
class RuleException:
    """A rule that some resources need not keep."""

    rule: str
    resource: str
    """A logical id or a pattern."""
    reason: str
    variant: str | None = None
    """The only variant for which the exception is; None for all."""

    def excepts(self, finding: Finding) -> bool:
        """Whether the finding is excepted."""
        return (
            self.rule == finding.rule
            and self.variant in (None, finding.variant)
            and fnmatchcase(finding.resource, self.resource)
        )

    def __str__(self) -> str:
        return f"{self.rule} for {self.resource}" + (f" ({self.variant})" if self.variant else "")


def read_exceptions(text: str) -> list[RuleException]:
    """Parse the file of exceptions. Raises WrongException if an entry has another form."""
    found = []
    for entry in tomllib.loads(text).get("exception", []):
        match entry:
            case {"rule": str(rule), "resources": resources, "reason": str(reason)} if (
                entry.keys() <= KEYS
                and _are_texts(resources)
                and _are_texts(entry.get("variants", ["every"]))
                and len(reason.split()) > 2
            ):
                found += [
                    RuleException(rule, each, reason, variant)
                    for each in resources
                    for variant in entry.get("variants", [None])
                ]
            case _:
                raise WrongException(
                    "an exception has a rule, a list of resources, a sentence as its reason, and "
                    f"perhaps variants; this is none: {entry}"
                )
    return found


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def judged(findings: Iterable[Finding], exceptions: Sequence[RuleException]) -> list[str]:
    """Return a line for each finding that is not excepted, and for each exception without one."""
    every = sorted(set(findings))
    lines = [str(one) for one in every if not any(each.excepts(one) for each in exceptions)]
    lines += [
        f"exceptions.toml: {each} excepts nothing: take it out"
        for each in exceptions
        if not any(each.excepts(one) for one in every)
    ]
    return lines


def not_found(findings: Iterable[Finding], wanted: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each fault of the faulty template (resource, rule) that was not found.

    A linter that does not find it has stopped working.
    """
    found = {(one.resource, one.rule) for one in findings}
    return [
        f"faulty.yaml: {resource}: {rule} was not found: the linter does not work"
        for resource, rule in wanted
        if (resource, rule) not in found
    ]
