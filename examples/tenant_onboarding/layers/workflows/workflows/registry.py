"""The workflows that an order may run, by name. An order that names none runs the first."""

from roundsman import Workflow
from workflows.tenant_onboarding import tenant_onboarding
from workflows.user_invitation import user_invitation

WORKFLOWS: dict[str, Workflow] = {
    tenant_onboarding.name: tenant_onboarding,
    user_invitation.name: user_invitation,
}
