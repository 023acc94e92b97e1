"""`roundsman preflight`: checks before a deployment what AWS does not say in time.

Each check is a pure function of what the project plans (`PlannedStack`) and of what AWS answers.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import ceil
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.outputs import StackDescription, describe_stack
from roundsman.command_line import REASON, command_line
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.task import PERFORM
from roundsman_console.aws.stack import PLANNED
from roundsman_console.aws.subscriptions import Subscriptions, read_subscriptions
from roundsman_console.aws.versions import FunctionVersions, functions_of, read_versions
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import aws_sentence, sentence_of
from roundsman_dev.preflight.documents import (
    CheckOutcome,
    CheckStatus,
    PreflightCheck,
    PreflightReport,
)
from roundsman_dev.preflight.open_orders import MOST, Function, OrdersRead, read_orders

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sts import STSClient

CONFIG = Config(connect_timeout=5)

SHOWN_ORDERS = 3
"""The number of orders that are named of those that would lose a function."""

CROWDED = 0.8
"""The part of the account's concurrency from which on others are too near."""

_OK, _WARNING, _FAULT = CheckStatus.OK, CheckStatus.WARNING, CheckStatus.FAULT
_PROTECTION = "DeletionProtection"
_ALARMS = "cloudwatch.amazonaws.com"
LEAST_CAP = 2
"""The least cap that Lambda allows for an event source mapping."""
KEPT_FREE = 100
"""What Lambda keeps free for functions without a reservation; all of a quota that is smaller."""
USUAL_QUOTA = 1000
"""The concurrent executions of an account that is not new."""
QUOTA_CODE = "L-B99A9384"
"""The code of the quota of concurrent executions in Service Quotas."""
WITHOUT_SNAPSTART = frozenset({"ap-east-2", "ap-southeast-6"})
"""The regions that have no SnapStart: Taipei and New Zealand (AWS Lambda Developer Guide)."""
_LOWER = "Or set SmallAccount of the block Engine to true, which gives each queue two instances."


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
    resources: Collection[str] = ()
    """The names of the resources and blocks of template.yaml."""
    reserved: int = 0
    """The instances that the stack reserves for functions of its own."""
    alarm_at: int | None = None
    """The instances of the account beyond which an alarm is raised; None without that alarm."""
    snap_starts: int = 0
    """The number of functions that begin from a snapshot (SnapStart)."""
    impossible: Sequence[str] = ()
    """Values of these parameters that AWS refuses together, as `roundsman check` says of others."""
    topic_keys: Sequence[str] = ()
    """The ids or ARNs of the KMS keys that encrypt a topic, which alarms must be able to use."""
    order_keys: Sequence[str] = ()
    """The ids or ARNs of the KMS keys that encrypt the queue of order events."""
    event_services: Sequence[str] = ()
    """The services whose events may become orders, by what `SubmitterSources` lists."""
    event_accounts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The accounts that `SubmitterSources` names, each with the kinds of source of it."""
    functions: Collection[Function] = ()
    """The functions of the agents that the template has."""
    functions_problem: str = ""
    """Why the code of the agents cannot be read; empty if it was read."""

    @property
    def most_instances(self) -> int:
        """The most instances that the stack runs at once: the sum of all caps."""
        return sum(self.caps.values()) + self.others


@dataclass(frozen=True, slots=True)
class Quota:
    """The concurrent executions of the account in the region, and who shares them."""

    limit: int
    free: int
    """Those that no function has reserved."""
    others: Sequence[str] | None = None
    """The functions of other stacks; None if they could not be listed."""
    unlisted: str = ""
    """Why they could not be listed."""


def run_preflight(
    planned: PlannedStack,
    *,
    strict: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> PreflightReport:
    """Make all checks. A part that cannot be read is not checked, with the reason.

    Without a region, or if AWS does not know the caller, the account is not read. With `strict`, a
    warning, or a check that was not made, stops the deployment too. `progress` is called with what
    is being read.
    """
    stops = {*CheckStatus} - {_OK} if strict else {_FAULT}

    def report(
        region: str | None, account: str | None, outcomes: Sequence[CheckOutcome]
    ) -> PreflightReport:
        ready = not any(one.status in stops for one in outcomes)
        return PreflightReport(planned.stack, planned.environment, region, account, ready, outcomes)

    named = check_name(planned)
    region = planned.region or boto3.Session().region_name
    if not region:  # None, whatever the types of boto3 say
        do = "Set AWS_DEFAULT_REGION, or region in samconfig.toml."
        nowhere = CheckOutcome(PreflightCheck.ACCOUNT, _FAULT, "No region is set.", (), do)
        return report(None, None, [named, nowhere])
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
        return report(region, None, [named, unknown])

    cloudformation: CloudFormationClient = client("cloudformation")
    found: StackDescription | None = None
    unread: str | None = None
    progress("Reading the stack")
    try:
        found = describe_stack(cloudformation, planned.stack)
    except (ClientError, BotoCoreError) as error:
        unread = aws_sentence(error)

    account = _Account(planned, region, client, found)
    progress("Reading the concurrency, the subscriptions, the keys, the versions and the orders")
    of_the_stack = {
        PreflightCheck.STACK: lambda: check_stack(planned, found),
        PreflightCheck.ALERTS: account.alerts,
        PreflightCheck.VERSIONS: account.versions,
        PreflightCheck.SNAPSTART: account.snapstart,
        PreflightCheck.ORDERS: account.orders,
    }
    read = {
        check: _read(check, each) if unread is None else _unchecked(check, unread)
        for check, each in of_the_stack.items()
    }
    outcomes = [
        named,
        check_parameters(planned, found.parameters if found else {}, caller["Account"]),
        CheckOutcome(PreflightCheck.ACCOUNT, _OK, f"You are {caller['Arn']} in {region}."),
        read[PreflightCheck.STACK],
        _read(PreflightCheck.CONCURRENCY, account.concurrency),
        read[PreflightCheck.ALERTS],
        _read(PreflightCheck.KEYS, account.keys),
        read[PreflightCheck.VERSIONS],
        read[PreflightCheck.SNAPSTART],
        read[PreflightCheck.ORDERS],
    ]
    return report(region, caller["Account"], outcomes)


@dataclass(frozen=True)
class _Account:
    """What the account says of the stack that is to be deployed. Raises the errors of boto3."""

    planned: PlannedStack
    region: str
    client: Callable[[str], Any]
    """A client of boto3 for this region, by the name of its service."""
    found: StackDescription | None
    """The stack as it is deployed; None if there is none."""

    @property
    def _outputs(self) -> Mapping[str, str]:
        return {} if self.found is None else self.found.outputs

    def concurrency(self) -> CheckOutcome:
        functions: LambdaClient = self.client("lambda")
        limits = functions.get_account_settings()["AccountLimit"]
        limit = limits["ConcurrentExecutions"]
        free = limits.get("UnreservedConcurrentExecutions", limit)
        others, unlisted = None, ""
        if self.planned.most_instances > free:  # only then does it matter
            try:
                own = functions_of(self._outputs).values()
                others = other_functions(functions, self.planned, own)
            except (ClientError, BotoCoreError) as error:
                unlisted = aws_sentence(error)
        exists = self.found is not None and self.found.status != PLANNED
        return check_concurrency(self.planned, Quota(limit, free, others, unlisted), exists=exists)

    def alerts(self) -> CheckOutcome:
        arn = self._outputs.get("AlertTopicArn")
        sns: SNSClient = self.client("sns")
        return check_alerts(self.planned, read_subscriptions(sns, arn) if arn else None)

    def keys(self) -> CheckOutcome:
        kms = self.client("kms")
        users = users_of_keys(self.planned)
        policies = {
            key: json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
            for key in users
        }
        return check_keys(policies, users)

    @cached_property
    def _versions(self) -> list[FunctionVersions]:
        functions: LambdaClient = self.client("lambda")
        named = functions_of(self._outputs)
        return [read_versions(functions, *each) for each in named.items()]

    def versions(self) -> CheckOutcome:
        return check_versions(self._versions)

    def snapstart(self) -> CheckOutcome:
        found = self._versions if self.planned.snap_starts else ()
        return check_snapstart(self.planned, self.region, found)

    def orders(self) -> CheckOutcome:
        if "TasksTableName" not in self._outputs or self.found is None:
            return CheckOutcome(PreflightCheck.ORDERS, _OK, "There are no orders yet.")
        if self.planned.functions_problem:
            do = "Run roundsman check, which says more."
            return _unchecked(PreflightCheck.ORDERS, self.planned.functions_problem, do)
        dynamodb: DynamoDBClient = self.client("dynamodb")
        read = read_orders(
            dynamodb,
            tasks_table=self._outputs["TasksTableName"],
            control_table=self._outputs["ControlTableName"],
            shards=int(self.found.parameters.get("DueShards", "16")),
        )
        return check_orders(self.planned.functions, read)


def _read(check: PreflightCheck, read: Callable[[], CheckOutcome]) -> CheckOutcome:
    try:
        return read()
    except (ClientError, BotoCoreError) as error:
        return _unchecked(check, aws_sentence(error))
    except (CallRefused, TryAgain) as error:
        return _unchecked(check, sentence_of(error))
    except (KeyError, TypeError, ValueError) as error:
        # An emulator, or a service that answers in a form that this code does not know.
        return _unchecked(check, f"The answer of AWS cannot be read ({type(error).__name__}).")


def _unchecked(
    check: PreflightCheck,
    why: str,
    do: str = "Give the caller the right to read this, or look at it yourself.",
) -> CheckOutcome:
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


def check_parameters(
    planned: PlannedStack, kept: Mapping[str, str], account: str = ""
) -> CheckOutcome:
    """Each parameter has a value that the templates accept, and no source is of another account.

    A deployment of an existing stack keeps the values that it is not given: `kept`. `account` is
    that of the caller; empty if it is not known.
    """
    check = PreflightCheck.PARAMETERS
    missing = [
        name for name in planned.required if name not in planned.parameters and name not in kept
    ]
    problems = [
        *planned.parameter_problems,
        *planned.impossible,
        *(f"{name} has no default and no value." for name in missing),
    ]
    foreign = [
        f"SubmitterSources of the block Engine lists a {kind} of the account {other}: the queue of "
        f"order events takes those of {account} alone, so each event of it would be refused."
        for other, kinds in planned.event_accounts.items()
        if account not in ("", other)
        for kind in kinds
    ]
    if foreign and not problems:
        sentence = f"{counted(len(foreign), 'source')} of events can never send an order."
        do = "List sources of this account: write ${AWS::AccountId} in their ARNs."
        return CheckOutcome(check, _FAULT, sentence, foreign, do)
    problems += foreign
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
    if not new and kept.get(_PROTECTION) == "true" and given != "true":
        sentence = f"{it} Its tables, which refuse to be deleted, would refuse it no longer."
        do = f"Set {_PROTECTION} to true: {given} may be what an earlier deployment has stored."
        return CheckOutcome(check, _FAULT if given == "later" else _WARNING, sentence, (), do)
    if not new and given == "later":
        sentence = f"{it} Its tables can still be deleted by a single call."
        do = f"Set {_PROTECTION} to true, now that the stack exists."
        return CheckOutcome(check, _WARNING, sentence, (), do)
    return CheckOutcome(check, _OK, it)


def other_functions(
    client: "LambdaClient", planned: PlannedStack, own: Collection[str] = ()
) -> list[str]:
    """Return the functions of the account and region that are not those of the stack.

    `own` are names of functions of the stack that are known. The name of another stack may begin
    with that of this one: `shop` and `shop-prod`. Raises the errors of boto3.
    """
    of_stack = tuple(f"{planned.stack}-{name}-" for name in planned.resources)
    return [
        name
        for page in client.get_paginator("list_functions").paginate()
        for name in (function["FunctionName"] for function in page["Functions"])
        if name not in own and not name.startswith(of_stack)
    ]


def check_concurrency(planned: PlannedStack, quota: Quota, *, exists: bool) -> CheckOutcome:
    """The account's concurrency that is not reserved is larger than the sum of all caps.

    Lambda refuses calls beyond it. A stack that has the account to itself only delays its own
    orders then; beside others, each takes the instances of the others. `exists` says whether the
    stack is deployed already.
    """
    check = PreflightCheck.CONCURRENCY
    needed = planned.most_instances
    sentence = f"The stack runs at most {needed} instances at once; {quota.free} of the account's "
    sentence += f"{quota.limit} are not reserved"
    if quota.free < 1:
        return CheckOutcome(
            check, _FAULT, f"{sentence}, so no function of the stack can start.", (), _ask(needed)
        )
    kept = min(planned.reserved, quota.limit - quota.free) if exists else 0
    if planned.reserved and quota.free + kept - planned.reserved < min(KEPT_FREE, quota.limit):
        details = [
            f"The stack reserves {planned.reserved} (SupervisorReserved), and Lambda keeps "
            f"{min(KEPT_FREE, quota.limit)} for functions without a reservation."
        ]
        do = f"Set SupervisorReserved to 0. {_ask(needed)}"
        return CheckOutcome(check, _FAULT, f"{sentence}.", details, do)
    if needed > quota.free:
        return _crowded(planned, quota, sentence, needed)
    if planned.alarm_at is not None and planned.alarm_at >= quota.limit:
        details = [f"AccountConcurrencyAlarm is raised beyond {planned.alarm_at}, which is never."]
        do = f"Set ConcurrencyAlarmInstances of the block Engine to {quota.limit * 4 // 5}."
        return CheckOutcome(check, _WARNING, f"{sentence}.", details, do)
    if needed > CROWDED * quota.free:
        sentence += f", which leaves {quota.free - needed} for all other functions."
        return CheckOutcome(check, _WARNING, sentence, (), f"{_ask(needed)} {_LOWER}")
    return CheckOutcome(check, _OK, f"{sentence}.")


def _crowded(planned: PlannedStack, quota: Quota, sentence: str, needed: int) -> CheckOutcome:
    check = PreflightCheck.CONCURRENCY
    largest = sorted(planned.caps.items(), key=lambda each: -each[1])[:5]
    details = [f"{queue}: {cap}" for queue, cap in largest]
    if quota.others is None:
        details.append(f"Whether other functions share them is not known: {quota.unlisted}")
    elif quota.others:
        count = counted(len(quota.others), "function")
        details.append(f"{count} of other stacks share them: {_named(quota.others)}.")
    else:
        least = all(cap <= LEAST_CAP for cap in planned.caps.values())
        sentence += ". No other function shares them, so that under load orders come late"
        sentence += ", and none fails." if least else ", and a step with few attempts may fail."
        do = _ask(needed) if least else f"{_ask(needed)} Until then: {_LOWER[3:]}"
        return CheckOutcome(check, _WARNING, sentence, () if least else details, do)
    return CheckOutcome(check, _FAULT, f"{sentence}.", details, f"{_ask(needed)} {_LOWER}")


def _ask(needed: int) -> str:
    wanted = max(USUAL_QUOTA, ceil(needed / CROWDED))
    return (
        "Ask AWS for more concurrent executions: aws service-quotas request-service-quota-increase "
        f"--service-code lambda --quota-code {QUOTA_CODE} --desired-value {wanted}."
    )


def check_snapstart(
    planned: PlannedStack, region: str, found: Sequence[FunctionVersions]
) -> CheckOutcome:
    """SnapStart, where it is on, is known to the region, and has few snapshots."""
    check = PreflightCheck.SNAPSTART
    if not planned.snap_starts:
        return CheckOutcome(check, _OK, "SnapStart is off.")
    sentence = f"SnapStart is on for {counted(planned.snap_starts, 'function')}."
    if region in WITHOUT_SNAPSTART:
        do = "Set SnapStart to false, unless AWS has brought it to the region."
        return CheckOutcome(check, _WARNING, f"{sentence} {region} had none.", (), do)
    many = [one for one in found if one.superfluous]
    if many:
        details = [f"{one.name}: {counted(len(one.snapshots), 'version')}" for one in many]
        do = " ".join(one.removal(one.superfluous) for one in many)
        sentence += " Each version of a function keeps a snapshot, which is paid for."
        return CheckOutcome(check, _WARNING, sentence, details, f"Remove old versions: {do}")
    return CheckOutcome(check, _OK, sentence)


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


def users_of_keys(planned: PlannedStack) -> dict[str, list[str]]:
    """Return the services that each key of the stack must let use it, by the key's id or ARN."""
    found: dict[str, list[str]] = {key: [_ALARMS] for key in planned.topic_keys}
    for key in planned.order_keys if planned.event_services else ():
        found.setdefault(key, []).extend(planned.event_services)
    return found


def check_keys(
    policies: Mapping[str, object], users: Mapping[str, Sequence[str]] | None = None
) -> CheckOutcome:
    """Alarms may use the keys of topics, and services that send events that of their queue.

    `policies` are the policies of the keys, by id or ARN, and `users` the services of each.
    """
    check = PreflightCheck.KEYS
    lacking = [
        (key, service)
        for key, policy in policies.items()
        for service in (users or {}).get(key, (_ALARMS,))
        if not _may_use(service, policy)
    ]
    if lacking:
        details = [
            f"The policy of {key} does not let {service} use it (kms:Decrypt, kms:GenerateDataKey)."
            for key, service in lacking
        ]
        services = dict.fromkeys(service for _, service in lacking)
        lost = [
            "No alarm reaches a topic" if one == _ALARMS else f"No event of {one} becomes an order"
            for one in services
        ]
        keys = counted(len({key for key, _ in lacking}), "KMS key")
        sentence = f"{'; '.join(lost)} under {keys}."
        do = "Add the statement of docs/how-to/use-your-own-key.md to the key policy."
        return CheckOutcome(check, _FAULT, sentence, details, do)
    sentence = "Alarms may use the keys of topics." if policies else "No topic has a KMS key."
    if any(service != _ALARMS for found in (users or {}).values() for service in found):
        sentence = "Alarms, and the services that send events, may use the keys."
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
        f"{one.name} runs version {one.running}; {_versions(one.orphans)} never live."
        for one in orphans
    ]
    sentence = (
        f"A deployment that failed published a version of {counted(len(orphans), 'function')}. "
        "The same code again would be refused: A version for this Lambda function exists."
    )
    removals = " ".join(one.removal(one.orphans) for one in orphans)
    return CheckOutcome(check, _WARNING, sentence, details, f"Remove it: {removals}")


def _versions(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"version {numbers[0]} was"
    return f"versions {', '.join(map(str, numbers))} were"


def check_orders(functions: Collection[Function], read: OrdersRead) -> CheckOutcome:
    """The agents keep each function that an open or an archived order may need.

    A request for a function that is missing is given back again and again.
    """
    check = PreflightCheck.ORDERS
    which = f"the first {MOST} open and {MOST} archived orders" if read.more else "the orders"
    rest = " The others were not read." if read.more else ""
    lost = read.losing(functions)
    if not lost:
        sentence = f"The agents have every function that {which} may need.{rest}"
        return CheckOutcome(check, _OK, sentence)
    losing = {task.task_id: task for tasks in lost.values() for task in tasks}
    agents = {function.agent for function in functions}
    details = [
        f"{function.agent} {_lacks(function, agents)}: {_named([task.task_id for task in tasks])}."
        for function, tasks in lost.items()
    ]
    least = "At least " if read.more else ""
    sentence = f"{least}{counted(len(losing), 'order')} would lose a function of an agent.{rest}"
    moves = " and ".join(
        command_line("move", options=("--workflow", workflow, *REASON))
        for workflow in sorted({task.workflow for task in losing.values()})
    )
    do = (
        "Keep these agents and functions in this deployment. After it, let the orders go on under "
        f"the plan that it brings ({moves}), or wait until they have ended. Then remove them."
    )
    return CheckOutcome(check, _WARNING, sentence, details, do)


def _lacks(function: Function, agents: Collection[str]) -> str:
    what = "performs" if function.operation == PERFORM else "undoes"
    if function.agent not in agents:
        return f"is no agent any more, but it {what} {function.step}"
    return f"has no function any more that {what} {function.step}"


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:SHOWN_ORDERS])
    return shown if len(ids) <= SHOWN_ORDERS else f"{shown} and {len(ids) - SHOWN_ORDERS} more"


def _may_use(service: str, policy: object) -> bool:
    given = set[str]()
    for statement in _items(policy.get("Statement") if isinstance(policy, dict) else None):
        if isinstance(statement, dict) and statement.get("Effect") == "Allow":
            principal = statement.get("Principal")
            if isinstance(principal, dict) and service in _items(principal.get("Service")):
                given |= {str(action).lower() for action in _items(statement.get("Action"))}
    return all(
        any(action == one or (one.endswith("*") and action.startswith(one[:-1])) for one in given)
        for action in ("kms:decrypt", "kms:generatedatakey")
    )


def _items(value: object) -> list[object]:
    return [] if value is None else value if isinstance(value, list) else [value]
