"""What a live page need not send again: the parts of it that the browser shows already.

The tag of an answer (`ETag`) has a fingerprint of each section of the page and one of it all. The
script sends it back with the next reading (`If-None-Match`). A section that is the same comes as an
empty one, marked `data-same`; if all is the same, nothing comes but the time of the reading. What
is told by the clock alone, as `5 s ago`, is no change: the script of the page counts on.
"""

import hashlib
import re
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import HTMLResponse, Response

from roundsman.model.instants import iso
from roundsman_console.base.clock import now

READ_AT = "Read-At"
"""The header with the instant of a reading that found nothing new."""
_SECTION = re.compile(
    r'<section [^>]*?aria-labelledby="([\w-]+)"[^>]*>(?:(?!<section\b).)*?</section>', re.DOTALL
)
"""A section without another one in it."""
_TOLD_BY_CLOCK = re.compile(r"(<time [^>]*data-relative[^>]*>)[^<]*")
_STRIP = re.compile(r"<aside .*?</aside>", re.DOTALL)
"""The line that says when the page was read."""
_DIGITS = 16
_TAG = re.compile(r"([\w-]*)=([0-9a-f]+)")
_PAGE = ""


def only_changed(page: Response, known: str) -> Response:
    """Return the page without the sections whose fingerprints are in `known`, with its own tag.

    An answer that says an error is returned as it is.
    """
    if page.status_code != HTTPStatus.OK:
        return page
    html, shown = bytes(page.body).decode(), dict(_TAG.findall(known))
    found = _fingerprints(html)
    tag = '"' + ",".join(f"{name}={digits}" for name, digits in found.items()) + '"'
    if found == shown:
        headers = {"ETag": tag, READ_AT: iso(now())}
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    same = {name for name, digits in found.items() if shown.get(name) == digits}

    def part(match: re.Match[str]) -> str:
        if match[1] not in same:
            return match[0]
        return f'<section aria-labelledby="{match[1]}" data-same></section>'

    return HTMLResponse(_SECTION.sub(part, html), headers={"ETag": tag})


def _fingerprints(html: str) -> Mapping[str, str]:
    """Return the fingerprints of the sections by their names, and that of the whole page.

    A section that could not be read has none, and neither has a name that two of them have.
    """
    sections = [(match[1], match[0]) for match in _SECTION.finditer(html)]
    names = [name for name, _ in sections]
    found = {
        name: _fingerprint(text)
        for name, text in sections
        if names.count(name) == 1 and " data-hole" not in text[: text.index(">")]
    }
    return {**found, _PAGE: _fingerprint(_STRIP.sub("", html))}


def _fingerprint(text: str) -> str:
    without_clock = _TOLD_BY_CLOCK.sub(r"\1", text)
    return hashlib.sha256(without_clock.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
