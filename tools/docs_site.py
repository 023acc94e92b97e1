"""The mkdocs hooks for the site of docs/, which `mkdocs.yml` names.

On a code host, a page may link to any file of the repository and contain Mermaid diagrams. The site
contains only the pages of docs/ and loads no scripts from other hosts. So the hooks replace a link
to a file outside docs/ by the file's path, and a state diagram by a table of its transitions. They
add the JSON schemas of the documents that commands print, which are in no folder, and llms.txt: a
list of the pages for programs that read the site (https://llmstxt.org). They log a
warning, which is an error in a strict build, for a link to a missing file and for a page that loads
a resource from another host.
"""

import logging
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tools import schemas

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SCHEMAS = "schemas"

_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_ANY_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_DIAGRAM = re.compile(r"```mermaid\nstateDiagram-v2\n(.*?)```\n?", re.DOTALL)
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|icon|preconnect|preload))"""
    r"""[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)""",
    re.IGNORECASE,
)
_ARROW = re.compile(r"^\s*(\S+) --> (\S+?)(?:: (.*))?$", re.MULTILINE)

log = logging.getLogger("mkdocs.roundsman")


def pages_in(folder: str) -> list[str]:
    """Return the pages of a folder of docs/, the index first."""
    names = sorted(path.name for path in (DOCS / folder).glob("*.md"))
    names.sort(key=lambda name: name != "index.md")
    return [f"{folder}/{name}" for name in names]


def expanded(nav: Iterable[object]) -> list[object]:
    """Return the navigation with each `folder/` replaced by the list of its pages."""
    found: list[object] = []
    for entry in nav:
        if isinstance(entry, dict):
            found.append({title: _expanded_value(value) for title, value in entry.items()})
        else:
            found.append(entry)
    return found


def _expanded_value(value: object) -> object:
    if isinstance(value, list):
        return expanded(value)
    if isinstance(value, str) and value.endswith("/"):
        return pages_in(value.rstrip("/"))
    return value


def llms_txt(
    name: str, description: str, nav: Iterable[object], pages: Mapping[str, tuple[str, str]]
) -> str:
    """Return llms.txt: each page of the navigation with its title and what it is for.

    `pages` has the address and the text of each page. The text begins with its title; what it is
    for is the first paragraph.
    """
    sections: dict[str, list[str]] = {}
    for section, page in _listed(nav, ""):
        address, text = pages[page]
        title, _, rest = text.removeprefix("# ").partition("\n")
        paragraph = " ".join(rest.strip().partition("\n\n")[0].split())
        line = f"- [{title}]({address}): " + _ANY_LINK.sub(r"\1", paragraph)
        sections.setdefault(section or "Start", []).append(line)
    parts = [f"## {section}\n\n" + "\n".join(lines) for section, lines in sections.items()]
    return "\n\n".join([f"# {name}", f"> {description}", *parts]) + "\n"


def _listed(nav: Iterable[object], section: str) -> Iterator[tuple[str, str]]:
    """Yield each page of an expanded navigation, after the title of its section."""
    for entry in nav:
        if isinstance(entry, dict):
            for title, value in entry.items():
                inner = value if isinstance(value, list) else [value]
                yield from _listed(inner, section or title)
        else:
            yield section, str(entry)


def as_table(diagram: str) -> str:
    """Return the transitions of a state diagram as a table: from, to, and the events."""
    rows = ["| from | to | on |", "| --- | --- | --- |"]
    for before, after, events in _ARROW.findall(diagram):
        start = "*begin*" if before == "[*]" else before
        end = "*end*" if after == "[*]" else after
        rows.append(f"| {start} | {end} | {events} |")
    return "\n".join([*rows, ""])


def for_the_site(markdown: str, page: str) -> str:
    """Return the text of a page for the site; `page` is its path in docs/."""
    here = posixpath.dirname(f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        label, target, _ = found.groups()
        path = posixpath.normpath(posixpath.join(here, target))
        if "://" in target or target.startswith(("mailto:", "/")) or path.startswith("docs/"):
            return found[0]
        if not (ROOT / path).exists():
            log.warning("%s links to %s, which does not exist", page, path)
        return (
            f"`{path}`" if label.strip("`") in (path, target, posixpath.basename(path)) else label
        )

    text = _DIAGRAM.sub(lambda found: as_table(found[1]), markdown)
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def loaded_from_outside(html: str) -> list[str]:
    """Return the URLs on other hosts from which a page loads a script, a style or a picture."""
    return [script or style for script, style in _LOADED.findall(html)]


def on_config(config: "MkDocsConfig") -> None:
    """Replace each folder in the navigation by its pages (mkdocs hook)."""
    config.nav = expanded(config.nav or [])


def on_files(files: "Files", config: "MkDocsConfig") -> None:
    """Add the JSON schemas and llms.txt to the site (mkdocs hook)."""
    from mkdocs.structure.files import File

    for name, text in schemas.files().items():
        files.append(File.generated(config, f"{SCHEMAS}/{name}", content=text))
    pages = {file.src_uri: (file.url, file.content_string) for file in files.documentation_pages()}
    text = llms_txt(config.site_name, config.site_description or "", config.nav or [], pages)
    files.append(File.generated(config, "llms.txt", content=text))


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    """Convert the Markdown text of a page (mkdocs hook)."""
    return for_the_site(markdown, page.file.src_uri)


def on_post_page(output: str, page: "Page", **_: object) -> str:
    """Warn if the HTML of a page loads a resource from another host (mkdocs hook)."""
    for address in loaded_from_outside(output):
        log.warning("%s loads %s", page.file.src_uri, address)
    return output
