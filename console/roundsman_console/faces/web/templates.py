"""Rendering of the templates: autoescape, and the texts and shapes that all pages share."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from roundsman.model.instants import format_duration, iso
from roundsman_console.base.clock import now
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.web.access.session import FORM_TOKEN, current_session
from roundsman_console.faces.web.aws_reachable import Note
from roundsman_console.faces.web.drawings.shapes import class_of, shape, state_mark
from roundsman_console.faces.web.guide import Guide
from roundsman_console.faces.web.live import live_times
from roundsman_console.faces.web.time_style import STYLES, time_style
from roundsman_console.faces.web.times import ago, clock, dated, left, sentence, until
from roundsman_console.faces.web.whereabouts import Whereabouts
from roundsman_console.facts.order.step_text import span
from roundsman_console.facts.orders.counts import Count

NAVIGATION = (
    ("/", "Overview"),
    ("/orders", "Orders"),
    ("/groups", "Failure groups"),
    ("/bulk", "Bulk runs"),
    ("/shift", "Shift"),
    ("/dead-letters", "Dead letters"),
    ("/rejected", "Rejected"),
    ("/agents", "Agents"),
    ("/workflows", "Workflows"),
    ("/cost", "Cost"),
    ("/doctor", "Doctor"),
)

LONGEST_PATH = 4_000
"""The number of characters of an address to which a page leads back; a longer one was made up."""


class Templates:
    """The templates of the console for one stack. `notes` are those on top of each page."""

    def __init__(
        self,
        where: Whereabouts,
        guide: Guide | None = None,
        notes: Callable[[], Sequence[Note]] = tuple,
    ) -> None:
        self._guide = guide
        self._where = where
        self._notes = notes
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            inert=inert,
            inert_lines=inert_lines,
            left=left,
            plural=plural,
            span=span,
            ago=ago,
            clock=clock,
            dated=dated,
            until=until,
            instant=iso,
            duration=format_duration,
            path=path_part,
            sentence=sentence,
            shape=shape,
            state=state_mark,
            number=number,
            at_least=at_least,
            first_upper=first_upper,
            query=query,
            state_class=class_of,
        )

        self._environment.globals.update(TIME_STYLES=STYLES, time_style=time_style)

    def render(self, template: str, values: Mapping[str, object], *, path: str) -> str:
        """Return a page with the navigation, for the session of the request.

        `path` is its own, with its query.
        """
        session, place = current_session(), path.partition("?")[0]
        if len(path) > LONGEST_PATH:
            path = place if len(place) <= LONGEST_PATH else "/"
        shared = {
            "stack": self._where.stack,
            "where": self._where,
            "guide": self._guide,
            "strip_notes": self._notes(),
            "live_times": live_times(),
            "shared": session.shared,
            "causes": {},
            "every": None,
            "read_only": session.read_only,
            "person": session.person,
            "navigation": NAVIGATION,
            "path": path,
            "place": place,
            "form_token_name": FORM_TOKEN,
            "form_token": session.form_token,
            "now": now(),
        }
        return self._environment.get_template(template).render({**shared, **values})

    def render_bare(self, template: str, values: Mapping[str, object]) -> str:
        """Return a page that shows nothing of the stack."""
        return self._environment.get_template(template).render(values)


def inert_lines(text: object) -> str:
    """Return a text of several lines, each of which is inert."""
    return "\n".join(inert(line) for line in str(text).split("\n"))


def first_upper(text: str) -> str:
    """Return a text that begins with a capital letter; the rest of it stays as it is."""
    return text[:1].upper() + text[1:]


def number(count: object) -> Markup:
    """Return a whole number with thin spaces between thousands; a zero is quiet."""
    if count == 0:
        return Markup('<span class="zero">0</span>')
    return escape(f"{count:,}".replace(",", "\u202f") if isinstance(count, int) else str(count))


def plural(count: int, one: str, more: str = "") -> Markup:
    """Return a number with its noun: `1 message`, `2 messages`."""
    return Markup("{} {}").format(number(count), one if count == 1 else more or one + "s")


def at_least(count: Count) -> Markup:
    """Return a count: `1 005` if it is right, `at least 500` if it stopped at a bound."""
    if not count.more:
        return number(count.count)
    if not count.count:  # all that were looked at are others
        return Markup('<span class="zero" title="Not all orders were read">not counted</span>')
    return Markup("at least {}").format(number(count.count))


def query(fields: Mapping[str, object]) -> str:
    """Return the query of an address with these fields; a field that is None is left out."""
    return urlencode({name: value for name, value in fields.items() if value is not None})


def path_part(text: object) -> str:
    """Return a text as one part of a path."""
    return quote(str(text), safe="")
