"""The databases agent: provisions the database of a tenant."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create, delete
from workflows.tenant import Tenant
from workflows.tenant_onboarding import provision_database

databases = Agent("databases", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL


@databases.performs(provision_database)
def provision(request: StepRequest) -> Json:
    """Create the database in the region that the tenant chose."""
    wanted = request.input_as(Tenant).database
    return create(service(), "databases", request, region=wanted.region, gigabytes=wanted.gigabytes)


@databases.compensates(provision_database)
def drop(request: StepRequest) -> None:
    """Delete the database. It has no data yet."""
    delete(service(), "databases", request)


handler = databases.lambda_handler
