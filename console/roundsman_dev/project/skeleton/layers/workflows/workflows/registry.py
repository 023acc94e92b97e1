"""The workflows that an order may run, by name. An order that names none runs the first."""

from roundsman import Workflow

WORKFLOWS: dict[str, Workflow] = {}
