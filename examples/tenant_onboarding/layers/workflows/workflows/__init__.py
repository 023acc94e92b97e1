"""The workflows of the onboarding of tenants."""
