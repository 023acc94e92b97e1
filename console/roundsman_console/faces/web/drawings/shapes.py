"""The shape of each state, so that a state is never shown by its colour alone. Pure.

The shapes are drawn here and not taken from a font, so that they look the same on every machine.
"""

from collections.abc import Mapping

from markupsafe import Markup

_CLOCK = '<circle cx="6" cy="6" r="4.5"/><path d="M6 3.2V6l2 1.4"/>'
_RING = '<circle cx="6" cy="6" r="4.2"/>'
_HALF = '<circle cx="6" cy="6" r="4.5"/><path class="full" d="M6 1.5a4.5 4.5 0 0 1 0 9z"/>'
_AGAIN = '<path d="M10.2 6A4.2 4.2 0 1 1 8.8 2.9M9.6.8v2.7H6.9"/>'
_BACK = '<path d="M4 1.6 1.4 4.2 4 6.8M1.4 4.2h5.4a3.1 3.1 0 0 1 0 6.2H4"/>'
_FULL = '<circle class="full" cx="6" cy="6" r="4.5"/>'
_TRIANGLE = '<path class="full" d="M6 1.2 11.2 10.6H.8z"/>'
_DIAMOND = '<path d="M6 1 11 6 6 11 1 6z"/>'
_CROSS = '<path d="m2.2 2.2 7.6 7.6m0-7.6-7.6 7.6"/>'
_PASSED = '<path d="m2 2.4 3.4 3.6L2 9.6m4.6-7.2L10 6 6.6 9.6"/>'
_PAUSE = '<path d="M4 2.2v7.6M8 2.2v7.6"/>'
_STOP = '<path class="full" d="M2.2 2.2h7.6v7.6H2.2z"/>'
_OPEN = '<path d="M9.4 3.2A4.4 4.4 0 1 0 9.4 8.8"/>'
_READY = '<path d="M2.4 6.4 5 9l4.8-6"/>'
_OTHER = '<path d="M3 6h6"/>'

SHAPES: Mapping[str, str] = {
    "Scheduled": _CLOCK,
    "Pending": _RING,
    "Active": _HALF,
    "Retry": _AGAIN,
    "Undoing": _BACK,
    "Completed": _FULL,
    "Archived": _TRIANGLE,
    "Undone": _DIAMOND,
    "Cancelled": _CROSS,
    "Processing": _HALF,
    "Processed": _FULL,
    "Error": _TRIANGLE,
    "UndoError": _TRIANGLE,
    "Skipped": _PASSED,
    "running": _HALF,
    "paused": _PAUSE,
    "stopped": _STOP,
    "finished": _FULL,
    "takes work": _READY,
    "held": _PAUSE,
    "circuit open": _OPEN,
}
"""The drawing of each state of orders, steps, bulk runs and agents, in a square of 12 units."""


def class_of(state: str) -> str:
    """Return the class of a state, which has its colour."""
    return f"state-{state.lower().replace(' ', '-') if state in SHAPES else 'other'}"


def shape(state: str) -> Markup:
    """Return the shape of a state, as the content of an SVG."""
    return Markup(SHAPES.get(state, _OTHER))  # noqa: S704  # the drawings above


def state_mark(name: object) -> Markup:
    """Return a state in words, with its shape and its colour, the same wherever it appears."""
    text = str(getattr(name, "value", name))
    return Markup(
        '<span class="state {}"><svg class="shape" viewBox="0 0 12 12" aria-hidden="true">{}</svg>'
        " {}</span>"
    ).format(class_of(text), shape(text), text)
