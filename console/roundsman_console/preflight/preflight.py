"""`roundsman preflight`: checks before a deployment what AWS does not say in time.

Each check is a pure function of what the project plans (`PlannedStack`) and of what AWS answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.outputs import StackDescription, describe_stack
from roundsman_console.alert.subscriptions import Subscriptions, read_subscriptions
from roundsman_console.counted import counted
from roundsman_console.errors import aws_sentence
from roundsman_console.preflight.documents import (
    CheckOutcomeDocument,
    CheckStatus,
    PreflightCheck,
    PreflightDocument,
)
from roundsman_console.stack.stack import PLANNED
from roundsman_console.stack.versions import FunctionVersions, functions_of, read_versions

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sts import STSClient

CONFIG = Config(connect_timeout=5)

CROWDED = 0.8
"""The part of the account's concurrency from which on others are too near."""

_OK, _WARNING, _FAULT = CheckStatus.OK, CheckStatus.WARNING, CheckStatus.FAULT
_PROTECTION = "DeletionProtection"
_ALARMS = "cloudwatch.amazonaws.com"
_ASK = (
    "Ask AWS for more: Service Quotas, AWS Lambda, Concurrent executions. Or lower the concurrency "
    "of the blocks in template.yaml."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStack:
    """What the project says of the stack that is to be deployed."""

    stack: str
    environment: str
    """The environment of samconfig.toml."""
    region: str | None = None
    """The region in samconfig.toml; None for that of the caller."""
    name_problems: Sequence[str] = ()
    """Why a nested stack would refuse the name of the stack."""
    parameter_problems: Sequence[str] = ()
    """Values that the template does not accept, and names that it does not have."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The values that samconfig.toml gives."""
    placeholders: Sequence[str] = ()
    """The parameters whose value names a domain that is reserved for documentation."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The defaults of the template's parameters."""
    required: Sequence[str] = ()
    """The parameters that have no default."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """The most concurrent instances for each event source mapping, by queue."""
    others: int = 0
    """The number of functions that no queue starts."""
    topic_keys: Sequence[str] = ()
    """The ids or ARNs of the KMS keys that encrypt a topic, which alarms must be able to use."""


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

    planned: PlannedStack
    region: str | None
    account: str | None
    outcomes: Sequence[CheckOutcome]
    strict: bool = False
    """Whether a warning, or a check that was not made, stops the deployment too."""

    @property
    def ready(self) -> bool:
        """Whether the deployment may go on."""
        stops = {*CheckStatus} - {_OK} if self.strict else {_FAULT}
        return not any(one.status in stops for one in self.outcomes)

    def document(self) -> PreflightDocument:
        """Return the report as JSON for scripts."""
        return {
            "stack": self.planned.stack,
            "environment": self.planned.environment,
            "region": self.region,
            "account": self.account,
            "ready": self.ready,
            "checks": [one.document() for one in self.outcomes],
        }


def run_preflight(
    planned: PlannedStack,
    *,
    strict: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> PreflightReport:
    """Make all checks. A part that cannot be read is not checked, with the reason.

    Without a region, or if AWS does not know the caller, the account is not read. `progress` is
    called with what is being read.
    """
    named = check_name(planned)
    region = planned.region or boto3.Session().region_name
    if not region:  # None, whatever the types of boto3 say
        do = "Set AWS_DEFAULT_REGION, or region in samconfig.toml."
        nowhere = CheckOutcome(PreflightCheck.ACCOUNT, _FAULT, "No region is set.", (), do)
        return PreflightReport(planned, None, None, [named, nowhere], strict)
    client = partial(boto3.client, region_name=region, config=CONFIG)
    progress("Reading the account")
    sts: STSClient = client("sts")
    try:
        caller = sts.get_caller_identity()
    except (ClientError, BotoCoreError) as error:
        sentence, why = "The caller is not known to AWS.", (aws_sentence(error),)
        unknown = CheckOutcome(
            PreflightCheck.ACCOUNT, _FAULT, sentence, why, "Sign in, and try again."
        )
        return PreflightReport(planned, region, None, [named, unknown], strict)

    cloudformation: CloudFormationClient = client("cloudformation")
    found: StackDescription | None = None
    unread: str | None = None
    progress("Reading the stack")
    try:
        found = describe_stack(cloudformation, planned.stack)
    except (ClientError, BotoCoreError) as error:
        unread = aws_sentence(error)

    def concurrency() -> CheckOutcome:
        functions: LambdaClient = client("lambda")
        limits = functions.get_account_settings()["AccountLimit"]
        limit = limits["ConcurrentExecutions"]
        free = limits.get("UnreservedConcurrentExecutions", limit)
        return check_concurrency(planned, limit, free)

    def alerts() -> CheckOutcome:
        arn = found.outputs.get("AlertTopicArn") if found else None
        sns: SNSClient = client("sns")
        return check_alerts(planned, read_subscriptions(sns, arn) if arn else None)

    def keys() -> CheckOutcome:
        kms = client("kms")
        policies = {
            key: json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
            for key in planned.topic_keys
        }
        return check_keys(policies)

    def versions() -> CheckOutcome:
        functions: LambdaClient = client("lambda")
        named = functions_of(found.outputs if found else {})
        return check_versions([read_versions(functions, *each) for each in named.items()])

    progress("Reading the concurrency, the subscriptions, the keys and the versions")
    outcomes = [
        named,
        check_parameters(planned, found.parameters if found else {}),
        CheckOutcome(PreflightCheck.ACCOUNT, _OK, f"You are {caller['Arn']} in {region}."),
        check_stack(planned, found) if unread is None else _unchecked(PreflightCheck.STACK, unread),
        _read(PreflightCheck.CONCURRENCY, concurrency),
        _read(PreflightCheck.ALERTS, alerts)
        if unread is None
        else _unchecked(PreflightCheck.ALERTS, unread),
        _read(PreflightCheck.KEYS, keys),
        _read(PreflightCheck.VERSIONS, versions)
        if unread is None
        else _unchecked(PreflightCheck.VERSIONS, unread),
    ]
    return PreflightReport(planned, region, caller["Account"], outcomes, strict)


def _read(check: PreflightCheck, read: Callable[[], CheckOutcome]) -> CheckOutcome:
    try:
        return read()
    except (ClientError, BotoCoreError) as error:
        return _unchecked(check, aws_sentence(error))
    except (KeyError, TypeError, ValueError) as error:
        # An emulator, or a service that answers in a form that this code does not know.
        return _unchecked(check, f"The answer of AWS cannot be read ({type(error).__name__}).")


def _unchecked(check: PreflightCheck, why: str) -> CheckOutcome:
    do = "Give the caller the right to read this, or look at it yourself."
    return CheckOutcome(check, CheckStatus.UNCHECKED, "Not checked.", (why,), do)


def check_name(planned: PlannedStack) -> CheckOutcome:
    """Each nested stack accepts the name of the stack."""
    check = PreflightCheck.NAME
    if planned.name_problems:
        sentence = f"{planned.stack} cannot be the name of the stack."
        return CheckOutcome(
            check, _FAULT, sentence, planned.name_problems, "Correct stack_name in samconfig.toml."
        )
    return CheckOutcome(check, _OK, f"samconfig.toml names the stack {planned.stack}.")


def check_parameters(planned: PlannedStack, kept: Mapping[str, str]) -> CheckOutcome:
    """Each parameter has a value that the templates accept.

    A deployment of an existing stack keeps the values that it is not given: `kept`.
    """
    check = PreflightCheck.PARAMETERS
    missing = [
        name for name in planned.required if name not in planned.parameters and name not in kept
    ]
    problems = [
        *planned.parameter_problems,
        *(f"{name} has no default and no value." for name in missing),
    ]
    if problems:
        sentence = f"{counted(len(problems), 'parameter')} cannot be deployed."
        do = "Correct parameter_overrides of samconfig.toml, or the file that it names."
        return CheckOutcome(check, _FAULT, sentence, problems, do)
    if planned.placeholders:
        sentence = "Parameters still name a domain that is reserved for documentation."
        details = [f"{name} is {planned.parameters[name]}." for name in planned.placeholders]
        return CheckOutcome(check, _WARNING, sentence, details, "Write your own address.")
    sentence = (
        f"{counted(len(planned.parameters), 'value')} given, each as the template accepts it."
    )
    return CheckOutcome(check, _OK, sentence)


def check_stack(planned: PlannedStack, found: StackDescription | None) -> CheckOutcome:
    """The stack is no other of this name, and its tables are protected, but not too early.

    A creation that fails cannot remove protected tables; later, tables should be protected.
    """
    check = PreflightCheck.STACK
    new = found is None or found.status == PLANNED
    if found is not None and not new and "TasksTableName" not in found.outputs:
        sentence = f"{planned.stack} is not a stack of Roundsman: it has no output TasksTableName."
        do = "Choose another stack_name in samconfig.toml."
        return CheckOutcome(check, _FAULT, sentence, (), do)
    it = f"{planned.stack} will be {'created' if new else 'updated'}."
    kept = planned.defaults if found is None else found.parameters
    given = planned.parameters.get(_PROTECTION, kept.get(_PROTECTION))
    if new and given == "true":
        sentence = f"{it} If that fails, its tables cannot be removed, because they are protected."
        do = f"Set {_PROTECTION} to later for the first deployment, and to true for the next."
        return CheckOutcome(check, _WARNING, sentence, (), do)
    if not new and given == "later":
        sentence = f"{it} Its tables can still be deleted by a single call."
        do = f"Set {_PROTECTION} to true, now that the stack exists."
        return CheckOutcome(check, _WARNING, sentence, (), do)
    return CheckOutcome(check, _OK, it)


def check_concurrency(planned: PlannedStack, limit: int, free: int) -> CheckOutcome:
    """The account's concurrency that is not reserved, `free`, is larger than the sum of all caps.

    Lambda refuses calls beyond it; a message that is refused too often becomes a dead letter.
    """
    check = PreflightCheck.CONCURRENCY
    needed = sum(planned.caps.values()) + planned.others
    sentence = f"The stack runs at most {needed} instances at once; {free} of the account's {limit}"
    if needed > free:
        largest = sorted(planned.caps.items(), key=lambda each: -each[1])[:5]
        details = [f"{queue}: {cap}" for queue, cap in largest]
        return CheckOutcome(check, _FAULT, f"{sentence} are not reserved.", details, _ASK)
    if needed > CROWDED * free:
        sentence += f" are not reserved, which leaves {free - needed} for all other functions."
        return CheckOutcome(check, _WARNING, sentence, (), _ASK)
    return CheckOutcome(check, _OK, f"{sentence} are not reserved.")


def check_alerts(planned: PlannedStack, found: Subscriptions | None) -> CheckOutcome:
    """Somebody receives the alerts; None are the subscriptions of a stack that does not exist."""
    check = PreflightCheck.ALERTS
    if found is None and planned.parameters.get(
        "AlertEmail", planned.defaults.get("AlertEmail", "")
    ):
        sentence = "AWS will send the address of AlertEmail a message to confirm."
        return CheckOutcome(check, _OK, sentence)
    if found is None:
        do = "Set AlertEmail, or subscribe to the output AlertTopicArn after the deployment."
        return CheckOutcome(check, _WARNING, "No address receives the alerts.", (), do)
    if found.pending:
        sentence = f"{counted(len(found.pending), 'subscription')} to the alerts not confirmed."
        do = "Open the message of AWS at each address, and confirm."
        return CheckOutcome(check, _WARNING, sentence, found.pending, do)
    if not found.confirmed:
        sentence, do = "Nobody is subscribed to the alerts.", "Subscribe to AlertTopicArn."
        return CheckOutcome(check, _WARNING, sentence, (), do)
    sentence = f"{counted(found.confirmed, 'subscription')} to the alerts confirmed."
    return CheckOutcome(check, _OK, sentence)


def check_keys(policies: Mapping[str, object]) -> CheckOutcome:
    """Alarms may use the keys of topics; `policies` are their key policies, by id or ARN."""
    check = PreflightCheck.KEYS
    lacking = [key for key, policy in policies.items() if not _alarms_may_use(policy)]
    if lacking:
        details = [
            f"The policy of {key} does not let {_ALARMS} use it (kms:Decrypt, kms:GenerateDataKey)."
            for key in lacking
        ]
        sentence = f"No alarm reaches a topic under {counted(len(lacking), 'KMS key')}."
        do = "Add the statement of docs/how-to/use-your-own-key.md to the key policy."
        return CheckOutcome(check, _FAULT, sentence, details, do)
    sentence = "Alarms may use the keys of topics." if policies else "No topic has a KMS key."
    return CheckOutcome(check, _OK, sentence)


def check_versions(found: Sequence[FunctionVersions]) -> CheckOutcome:
    """No deployment that failed has left a version whose code may come again."""
    check = PreflightCheck.VERSIONS
    orphans = [one for one in found if one.orphan is not None]
    if not orphans:
        return CheckOutcome(
            check, _OK, "No version of a failed deployment is newer than what runs."
        )
    details = [
        f"{one.name} runs version {one.running}; version {one.orphan} was never live."
        for one in orphans
    ]
    sentence = (
        f"A deployment that failed published a version of {counted(len(orphans), 'function')}. "
        "The same code again would be refused: A version for this Lambda function exists."
    )
    do = "Unless the code has changed since, give Revision of its block another number."
    return CheckOutcome(check, _WARNING, sentence, details, do)


def _alarms_may_use(policy: object) -> bool:
    given = set[str]()
    for statement in _items(policy.get("Statement") if isinstance(policy, dict) else None):
        if isinstance(statement, dict) and statement.get("Effect") == "Allow":
            principal = statement.get("Principal")
            if isinstance(principal, dict) and _ALARMS in _items(principal.get("Service")):
                given |= {str(action).lower() for action in _items(statement.get("Action"))}
    return all(
        any(action == one or (one.endswith("*") and action.startswith(one[:-1])) for one in given)
        for action in ("kms:decrypt", "kms:generatedatakey")
    )


def _items(value: object) -> list[object]:
    return [] if value is None else value if isinstance(value, list) else [value]
