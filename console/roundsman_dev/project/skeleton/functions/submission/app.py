"""The submission function: stores an order row and a task for each order event, or neither."""

from roundsman.aws.handlers.submission import submission_handler
from workflows.registry import WORKFLOWS

handler = submission_handler(WORKFLOWS)
