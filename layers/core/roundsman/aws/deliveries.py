"""What became of the statuses and alerts that were owed, as log lines and a metric."""

from roundsman.aws.observability import count, logger
from roundsman.delivery import Delivered


def report_delivered(delivered: Delivered) -> None:
    """Count and log each status that was given up, and log what is owed or untold still."""
    for given_up in delivered.given_up:
        count("StatusesGivenUp")
        logger().warning("status given up: no such reply queue", extra={"status": given_up.name})
    for owed in delivered.still_owed:
        logger().warning("not sent yet; still owed", extra={"owed": owed.name})
    for reason in delivered.untold:
        count("AlertsFailed")
        logger().error("alert not published; the supervisor will", extra={"reason": reason})
