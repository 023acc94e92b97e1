"""The checks before a deployment. Pure: each is a function of the plan and of the account."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from roundsman_console.inspector.documents.preflight import (
    CheckOutcomeDocument,
    CheckStatus,
    PreflightCheck,
    PreflightDocument,
)
from roundsman_console.inspector.preflight.facts import AccountFacts, KeyFact, PlannedStack

CROWDED = 0.8
"""The part of the account's concurrency from which on others are too near."""

_OK, _WARNING, _FAULT, _UNCHECKED = (
    CheckStatus.OK,
    CheckStatus.WARNING,
    CheckStatus.FAULT,
    CheckStatus.UNCHECKED,
)
_DOCUMENTATION = re.compile(r"(?:^|[/@.])example\.(?:com|net|org)\b")
"""The domains that are reserved for documentation (RFC 2606), which no service has."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of one check."""

    check: PreflightCheck
    status: CheckStatus
    sentence: str
    details: Sequence[str] = ()
    do: str | None = None

    def document(self) -> CheckOutcomeDocument:
        """Return the result as JSON for scripts."""
        return {
            "check": self.check,
            "status": self.status,
            "sentence": self.sentence,
            "details": list(self.details),
            "do": self.do,
        }


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """All checks before a deployment."""

    plan: PlannedStack
    facts: AccountFacts
    outcomes: Sequence[CheckOutcome]
    strict: bool = False
    """Whether a warning, or a check that was not made, stops the deployment too."""

    @property
    def ready(self) -> bool:
        """Whether the deployment may go on."""
        stops = {_FAULT, _WARNING, _UNCHECKED} if self.strict else {_FAULT}
        return not any(one.status in stops for one in self.outcomes)

    def document(self) -> PreflightDocument:
        """Return the report as JSON for scripts."""
        return {
            "stack": self.plan.stack,
            "environment": self.plan.environment,
            "region": self.facts.region,
            "account": self.facts.caller.account if self.facts.caller else None,
            "ready": self.ready,
            "checks": [one.document() for one in self.outcomes],
        }


Check: TypeAlias = Callable[[PlannedStack, AccountFacts], CheckOutcome]


def check_template(plan: PlannedStack, _: AccountFacts) -> CheckOutcome:
    """The definitions fit the template: `roundsman check`."""
    return _listed(
        PreflightCheck.TEMPLATE,
        plan.template_problems,
        "The template fits the workflows and the agents.",
        "Correct them: roundsman check lists the same problems.",
    )


def check_configuration(plan: PlannedStack, _: AccountFacts) -> CheckOutcome:
    """samconfig.toml has what `sam deploy` needs without questions."""
    return _listed(
        PreflightCheck.CONFIGURATION,
        plan.configuration_problems,
        f"samconfig.toml names the stack {plan.stack}.",
        "Correct samconfig.toml.",
    )


def check_parameters(plan: PlannedStack, facts: AccountFacts) -> CheckOutcome:
    """Each parameter has a value that the template accepts.

    A deployment of an existing stack keeps the values that it is not given.
    """
    kept = facts.deployed.parameters if facts.deployed else {}
    missing = [name for name in plan.required if name not in plan.parameters and name not in kept]
    problems = [
        *plan.parameter_problems,
        *(f"{name} has no default and no value." for name in missing),
    ]
    if problems:
        return CheckOutcome(
            PreflightCheck.PARAMETERS,
            _FAULT,
            f"{_counted(problems, 'parameter')} cannot be deployed.",
            problems,
            "Correct parameter_overrides of samconfig.toml, or the file that it names.",
        )
    placeholders = [
        f"{name} is {value}."
        for name, value in plan.parameters.items()
        if _DOCUMENTATION.search(value)
    ]
    if placeholders:
        return CheckOutcome(
            PreflightCheck.PARAMETERS,
            _WARNING,
            "Parameters still name a domain that is reserved for documentation.",
            placeholders,
            "Write your own address.",
        )
    changed = [
        f"{name} changes from {kept[name]} to {value}."
        for name, value in plan.parameters.items()
        if name in kept and kept[name] not in (value, "****")
    ]
    return CheckOutcome(
        PreflightCheck.PARAMETERS,
        _OK,
        f"{_counted(plan.parameters, 'value')} given, each as the template accepts it.",
        changed,
    )


def check_account(plan: PlannedStack, facts: AccountFacts) -> CheckOutcome:
    """The caller has credentials and a region."""
    check = PreflightCheck.ACCOUNT
    if facts.region is None:
        return CheckOutcome(
            check,
            _FAULT,
            "No region is set.",
            (),
            "Set AWS_DEFAULT_REGION, or region in samconfig.toml.",
        )
    caller = facts.caller
    if caller is None:
        why = facts.unseen.get(check, ("AWS did not say who the caller is.",))
        return CheckOutcome(
            check, _FAULT, "The caller is not known to AWS.", why, "Sign in, and try again."
        )
    where = f"{caller.arn} in {facts.region}"
    if caller.arn.endswith(":root"):
        return CheckOutcome(
            check,
            _WARNING,
            f"You are the root user of the account ({where}).",
            (),
            "Deploy with a role, as in docs/how-to/deploy-by-a-pipeline.md.",
        )
    role = plan.service_role
    if role and role.split(":")[4:5] != [caller.account]:
        return CheckOutcome(
            check,
            _FAULT,
            f"You are in account {caller.account}, and role_arn is of another: {role}.",
            (),
            "Sign in to the other account, or correct role_arn in samconfig.toml.",
        )
    return CheckOutcome(check, _OK, f"You are {where}.")


_BLOCKED: Mapping[str, str] = {
    "CREATE_FAILED": "Delete the stack, and deploy again.",
    "DELETE_FAILED": "Delete the stack, and keep the resources that cannot be deleted.",
    "ROLLBACK_COMPLETE": "Delete the stack, whose first deployment failed, and deploy again.",
    "ROLLBACK_FAILED": "Remove what its first deployment left, as in "
    "docs/runbook/first-deployment-failed.md, and deploy again.",
    "UPDATE_ROLLBACK_FAILED": "Continue its rollback: aws cloudformation continue-update-rollback.",
}


def check_stack(plan: PlannedStack, facts: AccountFacts) -> CheckOutcome:
    """The stack can be created or updated now."""
    check = PreflightCheck.STACK
    if not facts.stack_read:
        return _unchecked(check, facts)
    found = facts.deployed
    if found is None:
        return _protection(plan, facts, f"{plan.stack} does not exist yet; it will be created")
    it = f"{plan.stack} is {found.status}"
    if found.status in _BLOCKED:
        return CheckOutcome(check, _FAULT, f"{it}.", (), _BLOCKED[found.status])
    if found.status.endswith("_IN_PROGRESS") and found.status != _NEW:
        return CheckOutcome(
            check, _FAULT, f"{it}.", (), "Wait until the other deployment has ended."
        )
    if not found.is_roundsman and found.status != _NEW:
        return CheckOutcome(
            check,
            _FAULT,
            f"{it}, and it is not a stack of Roundsman: it has no output TasksTableName.",
            (),
            "Choose another stack_name in samconfig.toml.",
        )
    return _protection(plan, facts, f"{it}; it will be updated")


_PROTECTION = "DeletionProtection"
_NEW = "REVIEW_IN_PROGRESS"
"""The status of a stack that has a change set, and was never created."""


def _protection(plan: PlannedStack, facts: AccountFacts, it: str) -> CheckOutcome:
    """The outcome for a stack that can be deployed, by how its tables are protected.

    A creation that fails cannot remove protected tables; later, tables should be protected.
    """
    found = facts.deployed
    new = found is None or found.status == _NEW
    kept = plan.defaults if found is None else found.parameters
    given = plan.parameters.get(_PROTECTION, kept.get(_PROTECTION))
    if new and given == "true":
        return CheckOutcome(
            PreflightCheck.STACK,
            _WARNING,
            f"{it}. If that fails, its tables cannot be removed, because they are protected.",
            (),
            f"Set {_PROTECTION} to later for the first deployment, and to true for the next.",
        )
    if not new and given == "later":
        return CheckOutcome(
            PreflightCheck.STACK,
            _WARNING,
            f"{it}. Its tables can still be deleted by a single call.",
            (),
            f"Set {_PROTECTION} to true, now that the stack exists.",
        )
    return CheckOutcome(PreflightCheck.STACK, _OK, f"{it}.")


def check_concurrency(plan: PlannedStack, facts: AccountFacts) -> CheckOutcome:
    """The account's concurrency is larger than the sum of all caps.

    Lambda refuses calls beyond it; a message that is refused too often becomes a dead letter.
    """
    check = PreflightCheck.CONCURRENCY
    if plan.uncapped:
        return CheckOutcome(
            check,
            _FAULT,
            f"{_counted(plan.uncapped, 'event source mapping')} without MaximumConcurrency.",
            plan.uncapped,
            "Give it one; roundsman check says where.",
        )
    if facts.concurrency is None:
        return _unchecked(check, facts)
    needed = sum(plan.caps.values()) + plan.others
    limit, free = facts.concurrency.limit, facts.concurrency.unreserved
    said = f"The stack runs at most {needed} instances at once; {free} of the account's {limit}"
    if needed > free:
        largest = sorted(plan.caps.items(), key=lambda each: -each[1])[:5]
        return CheckOutcome(
            check,
            _FAULT,
            f"{said} are not reserved.",
            [f"{queue}: {cap}" for queue, cap in largest],
            "Lower the concurrency of the blocks in template.yaml, or ask AWS for more: Service "
            "Quotas, AWS Lambda, Concurrent executions.",
        )
    if needed > CROWDED * free:
        return CheckOutcome(
            check,
            _WARNING,
            f"{said} are not reserved, which leaves {free - needed} for all other functions.",
            (),
            "Ask AWS for more: Service Quotas, AWS Lambda, Concurrent executions.",
        )
    return CheckOutcome(check, _OK, f"{said} are not reserved.")


def check_alerts(plan: PlannedStack, facts: AccountFacts) -> CheckOutcome:
    """Somebody receives the alerts."""
    check = PreflightCheck.ALERTS
    found = facts.subscriptions
    if facts.unseen.get(check):
        return _unchecked(check, facts)
    if found is None:
        if plan.alert_email:
            return CheckOutcome(
                check, _OK, "AWS will send the address of AlertEmail a message to confirm."
            )
        return CheckOutcome(
            check,
            _WARNING,
            "No address receives the alerts.",
            (),
            "Set AlertEmail, or subscribe to the output AlertTopicArn after the deployment.",
        )
    if found.pending:
        return CheckOutcome(
            check,
            _WARNING,
            f"{_counted(found.pending, 'subscription')} to the alerts not confirmed.",
            found.pending,
            "Open the message of AWS at each address, and confirm.",
        )
    if not found.confirmed:
        return CheckOutcome(
            check,
            _WARNING,
            "Nobody is subscribed to the alerts.",
            (),
            "Subscribe to AlertTopicArn.",
        )
    return CheckOutcome(
        check, _OK, f"{_counted(range(found.confirmed), 'subscription')} to the alerts confirmed."
    )


def check_keys(plan: PlannedStack, facts: AccountFacts) -> CheckOutcome:
    """The KMS keys that parameters name can be used."""
    check = PreflightCheck.KEYS
    if not plan.keys:
        return CheckOutcome(check, _OK, "No parameter names a KMS key.")
    problems = [problem for key in facts.keys for problem in _key_problems(plan, facts, key)]
    if problems:
        return CheckOutcome(
            check,
            _FAULT,
            f"{_counted(problems, 'problem')} with the KMS keys that parameters name.",
            problems,
            "Correct the key, or its key policy.",
        )
    if facts.unseen.get(check):
        return _unchecked(check, facts)
    return CheckOutcome(check, _OK, "The KMS keys that parameters name are enabled.")


def _key_problems(plan: PlannedStack, facts: AccountFacts, key: KeyFact) -> list[str]:
    found = list[str]()
    if key.state != "Enabled":
        found.append(f"{key.key} is {key.state}.")
    if key.usage != "ENCRYPT_DECRYPT":
        found.append(f"{key.key} is for {key.usage}, not for encryption.")
    region = key.arn.split(":")[3:4]
    if facts.region and region != [facts.region]:
        found.append(f"{key.key} is in another region: {key.arn}.")
    if key.policy is None:
        return found
    allowed = list(_allowed(key.policy))
    root = f":iam::{facts.caller.account}:root" if facts.caller else ":root"
    if not any(
        who.endswith(root) or (facts.caller and who == facts.caller.account) for who, _ in allowed
    ):
        found.append(
            f"The policy of {key.key} does not let the account's IAM policies allow its use."
        )
    if key.key in plan.topic_keys:
        wanted = {"kms:decrypt", "kms:generatedatakey"}
        given = {action for who, action in allowed if who == "cloudwatch.amazonaws.com"}
        if not (given & {"kms:*", "*"}) and not all(_covers(given, action) for action in wanted):
            found.append(
                f"The policy of {key.key} does not let cloudwatch.amazonaws.com use it "
                "(kms:Decrypt, kms:GenerateDataKey), so no alarm reaches its topic."
            )
    return found


def _covers(given: set[str], action: str) -> bool:
    return any(
        action == one or (one.endswith("*") and action.startswith(one[:-1])) for one in given
    )


def _allowed(policy: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return each principal and action (in lower case) that a key policy allows."""
    found = list[tuple[str, str]]()
    for statement in _items(policy.get("Statement")):
        if not isinstance(statement, dict) or statement.get("Effect") != "Allow":
            continue
        principal = statement.get("Principal")
        named = principal.values() if isinstance(principal, dict) else [principal]
        whos = [str(who) for each in named for who in _items(each)]
        actions = [str(action).lower() for action in _items(statement.get("Action"))]
        found += [(who, action) for who in whos for action in actions]
    return found


def _items(value: object) -> list[object]:
    return [] if value is None else value if isinstance(value, list) else [value]


CHECKS: Sequence[Check] = (
    check_template,
    check_configuration,
    check_parameters,
    check_account,
    check_stack,
    check_concurrency,
    check_alerts,
    check_keys,
)


def run_checks(plan: PlannedStack, facts: AccountFacts) -> list[CheckOutcome]:
    """Run all checks, and return their outcomes in order."""
    return [check(plan, facts) for check in CHECKS]


def _listed(check: PreflightCheck, problems: Sequence[str], well: str, do: str) -> CheckOutcome:
    if not problems:
        return CheckOutcome(check, _OK, well)
    return CheckOutcome(check, _FAULT, f"{_counted(problems, 'problem')}.", problems, do)


def _unchecked(check: PreflightCheck, facts: AccountFacts) -> CheckOutcome:
    why = facts.unseen.get(check, ("The caller is not known.",))
    return CheckOutcome(
        check,
        _UNCHECKED,
        "Not checked.",
        why,
        "Give the caller the right to read this, or look at it yourself.",
    )


def _counted(found: Sequence[object] | Mapping[str, object], noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
