"""The registry of workflows: the names that an order event may use in `processing.workflow`."""

from collections.abc import Mapping

from roundsman import Workflow
from workflows.order_fulfilment import order_fulfilment

WORKFLOWS: Mapping[str, Workflow] = {workflow.name: workflow for workflow in (order_fulfilment,)}
