"""What a deployment needs, and what the account has, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roundsman_console.inspector.documents.preflight import PreflightCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStack:
    """What the project says of the stack that is to be deployed."""

    stack: str
    environment: str
    """The environment of samconfig.toml."""
    region: str | None = None
    """The region in samconfig.toml; None for that of the caller."""
    service_role: str | None = None
    """The role that CloudFormation takes (`role_arn`); None if it acts as the caller."""
    template_problems: Sequence[str] = ()
    """The problems of `roundsman check`."""
    configuration_problems: Sequence[str] = ()
    """What is wrong in samconfig.toml."""
    parameter_problems: Sequence[str] = ()
    """Values that the template does not accept, and names that it does not have."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The values that samconfig.toml gives."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The defaults of the template's parameters."""
    required: Sequence[str] = ()
    """The parameters that have no default."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """The most concurrent instances for each event source mapping, by queue."""
    uncapped: Sequence[str] = ()
    """The queues whose mapping has no cap."""
    others: int = 0
    """The number of functions that no queue starts."""
    keys: Sequence[str] = ()
    """The ids or ARNs of the KMS keys that parameters name."""
    topic_keys: Sequence[str] = ()
    """Those of them that encrypt a topic, which alarms must be able to use."""
    alert_email: str = ""


@dataclass(frozen=True, slots=True)
class CallerFact:
    """Who deploys."""

    account: str
    arn: str

    @property
    def partition(self) -> str:
        """The partition of the account: `aws`, `aws-cn`, `aws-us-gov`."""
        return self.arn.split(":")[1]


@dataclass(frozen=True, slots=True)
class DeployedFact:
    """The stack as it is deployed."""

    status: str
    parameters: Mapping[str, str]
    is_roundsman: bool
    """Whether it has the outputs of a stack of Roundsman."""


@dataclass(frozen=True, slots=True)
class ConcurrencyFact:
    """Lambda's concurrency of the account in the region."""

    limit: int
    unreserved: int
    """What no function has reserved."""


@dataclass(frozen=True, slots=True)
class SubscriptionFact:
    """The subscriptions of the AlertTopic."""

    confirmed: int
    pending: Sequence[str]
    """The endpoints that have not confirmed."""


@dataclass(frozen=True, slots=True)
class KeyFact:
    """A KMS key that a parameter names."""

    key: str
    arn: str
    state: str
    usage: str
    policy: Mapping[str, object] | None
    """The key policy; None if it could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFacts:
    """What was read from the account. A part that could not be read is None."""

    region: str | None = None
    caller: CallerFact | None = None
    stack_read: bool = False
    """Whether the stack was looked for."""
    deployed: DeployedFact | None = None
    """The stack; None if there is none yet."""
    concurrency: ConcurrencyFact | None = None
    subscriptions: SubscriptionFact | None = None
    keys: Sequence[KeyFact] = ()
    unseen: Mapping[PreflightCheck, Sequence[str]] = field(default_factory=dict)
    """Why a part could not be read, by the check that needs it."""
