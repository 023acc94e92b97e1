"""Says what became of an event that was sent to the SubmissionQueue."""

from roundsman.command_line import command_line
from roundsman_console.acts.order.acceptance import Became
from roundsman_console.acts.order.commands import CommandOutcome
from roundsman_console.base.errors import UNCONFIRMED, ConsoleError
from roundsman_console.base.hints import hint
from roundsman_console.base.sanitize import inert


def tell_acceptance(
    became: Became | None, which: str, see: str, *, named: str = "", quiet: bool
) -> None:
    """Print that the event was accepted, or sent if `became` is None; nothing if `quiet`.

    `which` is the event as the subject of a sentence, `see` the command that shows its order, and
    `named` the id under which it was sent. Raises ConsoleError, with the reason, if the event was
    refused or if that is not known.
    """
    if became is not None and became.outcome is not CommandOutcome.DONE:
        see = see if became.is_command else command_line("rejected ls")
        why = inert(became.why)
        if became.outcome is CommandOutcome.REFUSED:
            done = "refused" if became.is_command else "rejected"
            raise ConsoleError(f"{which} was {done}: {why}. See: {see}")
        raise ConsoleError(
            f"{which} was sent, but it is not known whether it was accepted: {why}. It may still "
            f"be on its way. See: {see}",
            UNCONFIRMED,
        )
    if not quiet:
        done = "Sent" if became is None else "Accepted"
        print(hint(f"{done}{named and f', with the id {named}'}. See: {see}"))
