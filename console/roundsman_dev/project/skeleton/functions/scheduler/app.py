"""The scheduler function: the only function that claims and starts steps."""

from roundsman.aws.handlers.scheduler import scheduler_handler

handler = scheduler_handler()
