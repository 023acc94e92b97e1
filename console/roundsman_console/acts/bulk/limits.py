"""The limits of a bulk run, as operators give them: canary, rate, orders in flight, failure share.

An invalid limit raises WrongFields with one sentence for each that is wrong.
"""

from roundsman.model.bulk_run import FASTEST, LONGEST_PATIENCE, MOST_AT_ONCE, WINDOW, Terms
from roundsman.model.instants import SECOND
from roundsman_console.base.errors import InspectorError, WrongFields
from roundsman_console.base.typed_inputs import read_duration, read_stop_at

CANARY, CANARY_WAIT, RATE, AT_ONCE = 5, "5m", 10.0, 500
"""The defaults."""
SLOWEST = 0.001
"""The lowest rate of a run, in orders per second: one in a quarter of an hour."""
LONGEST_SELECTION = 500  # characters; the selection is stored in the run's record


def read_terms(
    canary: int, canary_wait: str, rate: float, at_once: int, stop_at: str, *, anyway: bool
) -> Terms:
    """Return the limits of a bulk run: canary, rate, concurrency and failure share.

    Raises WrongFields if options are invalid.
    """
    wrong: dict[str, str] = {}
    share, patience = 0.0, 0
    if not 0 <= canary <= WINDOW:
        wrong["canary"] = f"--canary must be 0 to {WINDOW} orders, not {canary}."
    if not SLOWEST <= rate <= FASTEST:  # also false for NaN
        allowed = f"{SLOWEST:g} to {FASTEST:g}"
        wrong["rate"] = f"--rate must be {allowed} orders per second, not {rate:g}."
    if not 1 <= at_once <= MOST_AT_ONCE:
        wrong["at_once"] = f"--at-once must be 1 to {MOST_AT_ONCE} orders, not {at_once}."
    try:
        share = read_stop_at(stop_at)
    except InspectorError as error:
        wrong["stop_at"] = str(error)
    try:
        patience = read_duration(canary_wait, most=LONGEST_PATIENCE // SECOND) * SECOND
    except InspectorError as error:
        wrong["canary_wait"] = str(error)
    if wrong:
        raise WrongFields(wrong)
    return Terms(
        rate=rate,
        at_once=at_once,
        canary=canary,
        stop_at=share,
        patience=patience,
        anyway=anyway,
    )
