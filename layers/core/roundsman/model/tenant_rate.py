"""The rate of one tenant's calls at an agent: what it is counted by, and who waits for it.

The calls of each tenant are counted in a row of their own, under a hash of the tenant. A step above
the rate is parked in a lane of its tenant in the `parked` index, so that the end of a hold on the
agent does not wake it.
"""

from roundsman.model.instants import MINUTE
from roundsman.model.json import canonical_json, sha256
from roundsman.model.situations import OF_TENANT

LONGEST_RETURN = 60 * MINUTE
"""ms until a step comes again at the latest whose tenant is at its rate."""

KEY_DIGITS = 32


def tenant_key(agent: str, tenant: str) -> str:
    """Return the key under which the calls of a tenant are counted.

    It hides the name from who lists rows, and no more: a known name has a known key. An agent may
    not read the secret of the stack.
    """
    return sha256(canonical_json([agent, tenant]))[:KEY_DIGITS]


def tenant_lane(agent: str, tenant: str) -> str:
    """Return what the steps of a tenant wait for that is at its rate (`Parked.held_for`)."""
    return f"{agent}{OF_TENANT}{tenant_key(agent, tenant)}"
