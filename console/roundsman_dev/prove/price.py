"""What a proof costs at list prices: before by calculation, afterwards by CloudWatch's counts."""

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import sentence_of
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.live import read_usage
from roundsman_console.facts.cost.model import PER_ORDER, STANDING, Wanted, bill_of
from roundsman_console.facts.cost.prices import load_prices
from roundsman_dev.prove.document import SpentLine

STEPS = 3
"""The steps of most orders of a proof."""

SERVICE_MS = 1_500.0
"""How long a service takes on average, in ms, with those that hang or run out of time."""

INTERVAL = 10
"""From one pass of the supervisor to the next, in seconds, as in the template of a proof."""

PROFILE = "lean"
"""The profile of its stack, as in that template."""

HOURS_OF_A_MONTH = 730
HOURS = 2
"""For how long a proof is billed for its existence, at most: an hour that began counts whole."""


def estimated_usd(orders: int) -> float:
    """Return what a proof of so many orders costs, in USD."""
    wanted = Wanted(
        orders_per_month=orders,
        steps=STEPS,
        service_ms=SERVICE_MS,
        interval=INTERVAL,
        profile=PROFILE,
    )
    bill = bill_of(wanted, load_figures(), load_prices())
    return bill.usd(PER_ORDER) + bill.usd(STANDING) * HOURS / HOURS_OF_A_MONTH


def read_spent(stack: DeployedStack, since: int) -> tuple[list[SpentLine], str]:
    """Return what the stack has used since an instant (epoch ms), as far as it is counted.

    The second value says why CloudWatch cannot be read; it is empty if it can. It counts with a
    delay of some minutes: orders have passed, so a count of zero is one that is not there yet.
    """
    try:
        seconds = max(1, (now() - since) // SECOND)
        lines = read_usage(stack, seconds, load_prices()).spent.lines
    except (ClientError, BotoCoreError, RoundsmanError) as error:
        return [], sentence_of(error)  # a proof does not depend on it
    return [SpentLine(one.service, one.what, one.usd if one.amount else None) for one in lines], ""
