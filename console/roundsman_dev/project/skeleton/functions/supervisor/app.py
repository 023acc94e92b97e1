"""The supervisor function: checks the tasks that may be overdue."""

from roundsman.aws.handlers.supervisor import supervisor_handler

handler = supervisor_handler()
