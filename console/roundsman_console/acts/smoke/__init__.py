"""A smoke test: one order that is sent through a deployed stack."""
