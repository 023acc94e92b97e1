"""The remote services of the example: inventory, payment, shipping and mail, on one loopback port.

`contract` lists the calls and their answers, `bodies` validates request bodies, `ledger` keeps the
effects, `faults` and `fault_rules` inject failures, `hold` delays requests, `application` handles
one request with all of these, `admin` serves the administration paths, and `server` speaks HTTP.
"""

from roundsman_testing.remote_services.fault_rules import FaultsInvalid
from roundsman_testing.remote_services.server import PortUnavailable, RemoteServices

__all__ = ["FaultsInvalid", "PortUnavailable", "RemoteServices"]
