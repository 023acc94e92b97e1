"""The agents of the example: each one wraps a service that a deployment is given the address of."""

from tests.project import SERVICE_URLS

AGENTS = tuple(name.removesuffix("Url") for name in SERVICE_URLS)
"""The first parts of their logical ids."""
