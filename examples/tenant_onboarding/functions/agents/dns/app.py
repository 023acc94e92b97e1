"""The dns agent: gives a tenant its subdomain."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create, delete
from workflows.tenant import Tenant
from workflows.tenant_onboarding import set_up_domain

dns = Agent("dns", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL


@dns.performs(set_up_domain)
def add_record(request: StepRequest) -> Json:
    """Add the record of the subdomain. Permanent error if another tenant has it."""
    return create(service(), "dns", request, subdomain=request.input_as(Tenant).subdomain)


@dns.compensates(set_up_domain)
def remove_record(request: StepRequest) -> None:
    """Remove the record."""
    delete(service(), "dns", request)


handler = dns.lambda_handler
