"""The checks before a deployment, of what AWS does not say in time.

Each is a pure function of what the project plans (`PlannedStack`) and of what AWS answers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from roundsman.aws.outputs import StackDescription
from roundsman.command_line import REASON, command_line
from roundsman.model.task import PERFORM
from roundsman_console.aws.stack import PLANNED
from roundsman_console.aws.subscriptions import Subscriptions
from roundsman_console.aws.versions import FunctionVersions
from roundsman_console.base.counted import counted
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.stack import topic_findings, version_findings
from roundsman_console.facts.finding.table import FindingKind
from roundsman_dev.preflight.documents import CheckOutcome, CheckStatus, PreflightCheck
from roundsman_dev.preflight.open_orders import MOST, Function, OrdersRead
from roundsman_dev.preflight.table import Obstacle, obstacle, of_stack

SHOWN_ORDERS = 3
"""The number of orders that are named of those that would lose a function."""

CROWDED = 0.8
"""The part of the account's concurrency from which on others are too near."""

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


def _ok(check: PreflightCheck, sentence: str) -> CheckOutcome:
    return CheckOutcome(check, CheckStatus.OK, sentence)


def check_name(planned: PlannedStack) -> CheckOutcome:
    """Each nested stack accepts the name of the stack."""
    check, stack = PreflightCheck.NAME, planned.stack
    if planned.name_problems:
        return obstacle(check, Obstacle.NAME_REFUSED, planned.name_problems, stack=stack)
    return _ok(check, f"samconfig.toml names the stack {stack}.")


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
        sources = counted(len(foreign), "source")
        return obstacle(check, Obstacle.SOURCES_FOREIGN, foreign, sources=sources)
    problems += foreign
    if problems:
        parameters = counted(len(problems), "parameter")
        return obstacle(check, Obstacle.PARAMETERS_REFUSED, problems, parameters=parameters)
    if planned.placeholders:
        details = [f"{name} is {planned.parameters[name]}." for name in planned.placeholders]
        return obstacle(check, Obstacle.PLACEHOLDERS_LEFT, details)
    values = counted(len(planned.parameters), "value")
    return _ok(check, f"{values} given, each as the template accepts it.")


def check_stack(planned: PlannedStack, found: StackDescription | None) -> CheckOutcome:
    """The stack is no other of this name, and its tables are protected, but not too early.

    A creation that fails cannot remove protected tables; later, tables should be protected.
    """
    check, stack = PreflightCheck.STACK, planned.stack
    new = found is None or found.status == PLANNED
    if found is not None and not new and "TasksTableName" not in found.outputs:
        return obstacle(check, Obstacle.ANOTHER_STACK, stack=stack)
    kept = planned.defaults if found is None else found.parameters
    given = planned.parameters.get(_PROTECTION, kept.get(_PROTECTION))
    if new and given == "true":
        return obstacle(check, Obstacle.PROTECTED_TOO_EARLY, stack=stack)
    if not new and kept.get(_PROTECTION) == "true" and given != "true":
        by_default = given == "later"
        row = Obstacle.PROTECTION_LOST if by_default else Obstacle.PROTECTION_GIVEN_UP
        return obstacle(check, row, stack=stack, given=given)
    if not new and given == "later":
        evidence = f"{_PROTECTION} is {given}"
        return of_stack(check, [Finding(FindingKind.PROTECTION_OFF, "each table", evidence)])
    return _ok(check, f"{stack} will be {'created' if new else 'updated'}.")


def check_concurrency(planned: PlannedStack, quota: Quota, *, exists: bool) -> CheckOutcome:
    """The account's concurrency that is not reserved is larger than the sum of all caps.

    Lambda refuses calls beyond it. A stack that has the account to itself only delays its own
    orders then; beside others, each takes the instances of the others. `exists` says whether the
    stack is deployed already.
    """
    needed, details = planned.most_instances, list[str]()
    sentence = f"The stack runs at most {needed} instances at once; {quota.free} of the account's "
    sentence += f"{quota.limit} are not reserved"
    kept = min(planned.reserved, quota.limit - quota.free) if exists else 0
    least = min(KEPT_FREE, quota.limit)
    if quota.free < 1:
        row = Obstacle.NO_CONCURRENCY
    elif planned.reserved and quota.free + kept - planned.reserved < least:
        row = Obstacle.RESERVATION_REFUSED
        details = [
            f"The stack reserves {planned.reserved} (SupervisorReserved), and Lambda keeps {least} "
            "for functions without a reservation."
        ]
    elif needed > quota.free:
        row, details = _short(planned, quota)
    elif planned.alarm_at is not None and planned.alarm_at >= quota.limit:
        row = Obstacle.ALARM_NEVER_RAISED
        details = [f"AccountConcurrencyAlarm is raised beyond {planned.alarm_at}, which is never."]
    elif needed > CROWDED * quota.free:
        row = Obstacle.CONCURRENCY_CROWDED
    else:
        return _ok(PreflightCheck.CONCURRENCY, f"{sentence}.")
    return obstacle(
        PreflightCheck.CONCURRENCY,
        row,
        details,
        instances=sentence,
        ask=_ask(needed),
        four_fifths=quota.limit * 4 // 5,
        left=quota.free - needed,
    )


def _short(planned: PlannedStack, quota: Quota) -> tuple[Obstacle, list[str]]:
    """What it is, with its details, that the stack may need more than the account has free."""
    largest = sorted(planned.caps.items(), key=lambda each: -each[1])[:5]
    details = [f"{queue}: {cap}" for queue, cap in largest]
    if quota.others is None:
        details.append(f"Whether other functions share them is not known: {quota.unlisted}")
    elif quota.others:
        count = counted(len(quota.others), "function")
        details.append(f"{count} of other stacks share them: {_named(quota.others)}.")
    elif all(cap <= LEAST_CAP for cap in planned.caps.values()):
        return Obstacle.CONCURRENCY_LEAST, []
    else:
        return Obstacle.CONCURRENCY_SHORT, details
    return Obstacle.CONCURRENCY_SHARED, details


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
        return _ok(check, "SnapStart is off.")
    functions = counted(planned.snap_starts, "function")
    if region in WITHOUT_SNAPSTART:
        return obstacle(check, Obstacle.SNAPSTART_UNKNOWN, functions=functions, region=region)
    if many := _of_versions(found, FindingKind.SNAPSHOTS_PILE_UP):
        return of_stack(check, many)
    return _ok(check, f"SnapStart is on for {functions}.")


def check_versions(found: Sequence[FunctionVersions]) -> CheckOutcome:
    """No deployment that failed has left a version whose code may come again."""
    check = PreflightCheck.VERSIONS
    if orphans := _of_versions(found, FindingKind.ORPHAN_VERSION):
        return of_stack(check, orphans)
    return _ok(check, "No version of a failed deployment is newer than what runs.")


def _of_versions(found: Sequence[FunctionVersions], kind: FindingKind) -> list[Finding]:
    findings = (finding for one in found for finding in version_findings(one))
    return [finding for finding in findings if finding.kind is kind]


def check_alerts(planned: PlannedStack, topic: str, found: Subscriptions | None) -> CheckOutcome:
    """Somebody receives the alerts.

    `topic` is the ARN of the AlertTopic. None are the subscriptions of a stack that does not exist.
    """
    check = PreflightCheck.ALERTS
    if found is None and planned.parameters.get(
        "AlertEmail", planned.defaults.get("AlertEmail", "")
    ):
        return _ok(check, "AWS will send the address of AlertEmail a message to confirm.")
    if found is None:
        return obstacle(check, Obstacle.ALERTS_NOT_SENT)
    if found.pending:
        pending = counted(len(found.pending), "subscription")
        return obstacle(check, Obstacle.SUBSCRIPTIONS_PENDING, found.pending, subscriptions=pending)
    if unheard := [*topic_findings(topic, found)]:
        return of_stack(check, unheard)
    return _ok(check, f"{counted(found.confirmed, 'subscription')} to the alerts confirmed.")


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
        return obstacle(
            check,
            Obstacle.KEYS_REFUSE,
            details,
            lost="; ".join(lost),
            keys=counted(len({key for key, _ in lacking}), "KMS key"),
        )
    sentence = "Alarms may use the keys of topics." if policies else "No topic has a KMS key."
    if any(service != _ALARMS for found in (users or {}).values() for service in found):
        sentence = "Alarms, and the services that send events, may use the keys."
    return _ok(check, sentence)


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
        return _ok(check, sentence)
    losing = {task.task_id: task for tasks in lost.values() for task in tasks}
    agents = {function.agent for function in functions}
    details = [
        f"{function.agent} {_lacks(function, agents)}: {_named([task.task_id for task in tasks])}."
        for function, tasks in lost.items()
    ]
    moves = " and ".join(
        command_line("move", options=("--workflow", workflow, *REASON))
        for workflow in sorted({task.workflow for task in losing.values()})
    )
    orders = f"{'At least ' if read.more else ''}{counted(len(losing), 'order')}"
    return obstacle(check, Obstacle.FUNCTIONS_LOST, details, orders=orders, rest=rest, moves=moves)


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
