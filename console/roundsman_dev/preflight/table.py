"""The table of what `roundsman preflight` finds: the rows that are true only before a deployment.

What a deployed stack may have too is a row of the doctor's table
(`roundsman_console.facts.finding.table`), and both say it in the same words.
"""

from collections.abc import Sequence

from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.table import Severity, Trouble
from roundsman_dev.preflight.documents import CheckOutcome, CheckStatus, PreflightCheck

_FAULT, _WARNING = Severity.CRITICAL, Severity.WARNING
_ACCOUNT = "how-to/deploy.md#check-the-account"
_PARAMETERS = "reference/parameters.md"
_NEW_ACCOUNT = "how-to/deploy.md#a-new-account"
_SMALL = "set SmallAccount of the block Engine to true, which gives each queue two instances."
_ALONE = "{instances}. No other function shares them, so that under load orders come late, and "
_UNPROTECTED = (
    "how-to/deploy.md",
    "{stack} will be updated. Its tables, which refuse to be deleted, would refuse it no longer.",
    "Set DeletionProtection to true: {given} may be what an earlier deployment has stored.",
)


class Obstacle(Trouble):
    """A row: what a deployment would meet. Scripts read the id.

    A critical one is a fault. The words have places for what a check knows, such as `{stack}`;
    `{instances}` is how many instances the stack needs and the account has, and `{ask}` the command
    that asks for more.
    """

    NAME_REFUSED = (
        "name-refused",
        _FAULT,
        _ACCOUNT,
        "{stack} cannot be the name of the stack.",
        "Correct stack_name in samconfig.toml.",
    )
    PARAMETERS_REFUSED = (
        "parameters-refused",
        _FAULT,
        _PARAMETERS,
        "{parameters} cannot be deployed.",
        "Correct parameter_overrides of samconfig.toml, or the file that it names.",
    )
    SOURCES_FOREIGN = (
        "sources-foreign",
        _FAULT,
        "how-to/take-events.md",
        "{sources} of events can never send an order.",
        "List sources of this account: write ${{AWS::AccountId}} in their ARNs.",
    )
    PLACEHOLDERS_LEFT = (
        "placeholders-left",
        _WARNING,
        _PARAMETERS,
        "Parameters still name a domain that is reserved for documentation.",
        "Write your own address.",
    )
    REGION_UNSET = (
        "region-unset",
        _FAULT,
        _ACCOUNT,
        "No region is set.",
        "Set AWS_DEFAULT_REGION, or region in samconfig.toml.",
    )
    CALLER_UNKNOWN = (
        "caller-unknown",
        _FAULT,
        _ACCOUNT,
        "The caller is not known to AWS.",
        "Sign in, and try again.",
    )
    ANOTHER_STACK = (
        "another-stack",
        _FAULT,
        _ACCOUNT,
        "{stack} is not a stack of Roundsman: it has no output TasksTableName.",
        "Choose another stack_name in samconfig.toml.",
    )
    PROTECTED_TOO_EARLY = (
        "protected-too-early",
        _WARNING,
        "runbook/first-deployment-failed.md",
        "{stack} will be created. If that fails, its tables cannot be removed, because they are "
        "protected.",
        "Set DeletionProtection to later for the first deployment, and to true for the next.",
    )
    PROTECTION_LOST = "protection-lost", _FAULT, *_UNPROTECTED
    PROTECTION_GIVEN_UP = "protection-given-up", _WARNING, *_UNPROTECTED
    NO_CONCURRENCY = (
        "no-concurrency",
        _FAULT,
        _NEW_ACCOUNT,
        "{instances}, so no function of the stack can start.",
        "{ask}",
    )
    RESERVATION_REFUSED = (
        "reservation-refused",
        _FAULT,
        _NEW_ACCOUNT,
        "{instances}.",
        "Set SupervisorReserved to 0. {ask}",
    )
    CONCURRENCY_SHARED = (
        "concurrency-shared",
        _FAULT,
        _NEW_ACCOUNT,
        "{instances}.",
        f"{{ask}} Or {_SMALL}",
    )
    CONCURRENCY_SHORT = (
        "concurrency-short",
        _WARNING,
        _NEW_ACCOUNT,
        f"{_ALONE}a step with few attempts may fail.",
        f"{{ask}} Until then: {_SMALL}",
    )
    CONCURRENCY_LEAST = (
        "concurrency-least",
        _WARNING,
        _NEW_ACCOUNT,
        f"{_ALONE}none fails.",
        "{ask}",
    )
    ALARM_NEVER_RAISED = (
        "alarm-never-raised",
        _WARNING,
        _NEW_ACCOUNT,
        "{instances}.",
        "Set ConcurrencyAlarmInstances of the block Engine to {four_fifths}.",
    )
    CONCURRENCY_CROWDED = (
        "concurrency-crowded",
        _WARNING,
        _NEW_ACCOUNT,
        "{instances}, which leaves {left} for all other functions.",
        f"{{ask}} Or {_SMALL}",
    )
    ALERTS_NOT_SENT = (
        "alerts-not-sent",
        _WARNING,
        "how-to/deploy.md#alerts",
        "No address receives the alerts.",
        "Set AlertEmail, or subscribe to the output AlertTopicArn after the deployment.",
    )
    SUBSCRIPTIONS_PENDING = (
        "subscriptions-pending",
        _WARNING,
        "how-to/deploy.md#alerts",
        "{subscriptions} to the alerts not confirmed.",
        "Open the message of AWS at each address, and confirm.",
    )
    KEYS_REFUSE = (
        "keys-refuse",
        _FAULT,
        "how-to/use-your-own-key.md",
        "{lost} under {keys}.",
        "Add the statement of docs/how-to/use-your-own-key.md to the key policy.",
    )
    SNAPSTART_UNKNOWN = (
        "snapstart-unknown",
        _WARNING,
        "how-to/deploy.md#shorter-cold-starts",
        "SnapStart is on for {functions}. {region} had none.",
        "Set SnapStart to false, unless AWS has brought it to the region.",
    )
    FUNCTIONS_LOST = (
        "functions-lost",
        _WARNING,
        "how-to/deploy.md#before-you-remove-an-agent-or-a-function",
        "{orders} would lose a function of an agent.{rest}",
        "Keep these agents and functions in this deployment. After it, let the orders go on under "
        "the plan that it brings ({moves}), or wait until they have ended. Then remove them.",
    )


def obstacle(
    check: PreflightCheck, row: Obstacle, details: Sequence[str] = (), **said: object
) -> CheckOutcome:
    """Return the result of a check that has found this; `said` is for the places in its words."""
    status = CheckStatus.FAULT if row.severity is Severity.CRITICAL else CheckStatus.WARNING
    sentence, do = row.means.format_map(said), row.repair.format_map(said)
    return CheckOutcome(check, status, sentence, details, do, row, row.page)


def of_stack(check: PreflightCheck, found: Sequence[Finding]) -> CheckOutcome:
    """Return the result of a check that has found what the doctor of the stack finds too.

    The stack has it already, so that it is no fault of the deployment. The findings, at least one,
    are of one kind.
    """
    row = found[0].kind
    details = [f"{one.where}: {one.evidence}" for one in found]
    do = " ".join([row.repair, *(one.command for one in found if one.command)])
    return CheckOutcome(check, CheckStatus.WARNING, row.means, details, do, row, row.page)
