"""How does the browser get the link? Through a file, because others can read its command line."""

import html
import webbrowser
from pathlib import Path

from roundsman_console.faces.web.access.hosts import write_own

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Roundsman</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}"></head>
<body><p><a href="{link}">Open the console</a></p></body>
</html>
"""


def open_link(link: str, file: Path) -> bool:
    """Write a file that leads to the link, which is a secret, and open it in a browser.

    Only this user may read the file; the caller removes it. Returns whether a browser was opened.
    Raises OSError if the file cannot be written.
    """
    write_own(file, _PAGE.format(link=html.escape(link)))
    return webbrowser.open(file.as_uri())
