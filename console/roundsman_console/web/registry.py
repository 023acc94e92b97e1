"""Commands as buttons: a form, what the command would do, and its outcome.

A command is sent in two steps, as the command line does it: what would happen is shown first, and
the same form is sent again to carry it out.
"""

from collections.abc import Mapping

from roundsman_console.agent.forms import commands_on_agents
from roundsman_console.agent.order_forms import commands_on_held_orders
from roundsman_console.bulk.forms import commands_on_many
from roundsman_console.callback.forms import ANSWER
from roundsman_console.dead_letter.forms import commands_on_messages
from roundsman_console.errors import NotFound
from roundsman_console.inspector import Inspector
from roundsman_console.order.forms import commands_on_orders
from roundsman_console.reconcile.forms import RECONCILE
from roundsman_console.smoke.forms import SMOKE
from roundsman_console.stack.forms import ROLLBACK
from roundsman_console.verbs.verb import Form
from roundsman_console.web.command_page import FormCommand
from roundsman_console.web.session import Session

GOES_TO = "goes_to"
"""The value with the address of the page to show instead; empty for the page itself."""

COMMANDS: Mapping[str, FormCommand] = {
    **commands_on_orders(),
    **commands_on_agents(),
    **commands_on_held_orders(),
    **commands_on_many(),
    **commands_on_messages(),
    **{one.verb: one for one in (ANSWER, SMOKE, RECONCILE, ROLLBACK)},
}
"""The commands in the browser, by the last part of the address of their form."""


def read_form(inspector: Inspector, given: Form, read_only: bool) -> Mapping[str, object]:
    """Read an empty form. Raises NotFound if there is no such command, order, agent or message."""
    return {"page": _command(given).show(inspector, given), "locked": read_only}


def carry_out(inspector: Inspector, given: Form, session: Session) -> Mapping[str, object]:
    """Show what the command would do; with the field GO, send it and show its outcome.

    It is sent only if exactly this form was shown, and what it is about is as it was then. Raises
    NotFound if there is no such command, order, agent or message, and InspectorError for a wrong
    field.
    """
    page = _command(given).carry_out(inspector, given, session)
    return {"page": page, "locked": False, GOES_TO: page.goes_to}


def _command(given: Form) -> FormCommand:
    found = COMMANDS.get(given["command"])
    if found is None:
        raise NotFound("There is no such command.")
    return found
