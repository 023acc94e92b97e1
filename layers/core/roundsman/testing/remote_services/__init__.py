"""The remote services of the example: inventory, payment, shipping and mail, on one loopback port.

`contract` says which calls exist and how they are answered, `bodies` what a body must hold,
`ledger` what really happened, `faults` and `fault_rules` what goes wrong on purpose,
`application` joins them for one request, `server` speaks HTTP, `command` is the CLI.
"""

from roundsman.testing.remote_services.fault_rules import FaultsInvalid
from roundsman.testing.remote_services.server import PortUnavailable, RemoteServices

__all__ = ["FaultsInvalid", "PortUnavailable", "RemoteServices"]
