"""A person before the pages of the console, without a browser: what is clicked and typed counts.

The person finds a link by its words and a form by its button, as they are on the page, and sends
what the form has: its hidden fields, what it proposes, and what was typed.
"""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from httpx2 import Response

from tests.web.browsers import Browser, text_of


@dataclass
class Field:
    """A field of a form."""

    name: str
    value: str = ""
    kind: str = "text"
    label: str = ""
    checked: bool = False
    required: bool = False
    focused: bool = False


@dataclass
class Button:
    words: str = ""
    name: str = ""
    value: str = ""
    classes: str = ""


@dataclass
class Form:
    action: str
    fields: list[Field] = field(default_factory=list)
    buttons: list[Button] = field(default_factory=list)

    def field(self, label: str) -> Field:
        """The field whose label begins so."""
        found = [one for one in self.fields if one.label.strip().startswith(label)]
        assert found, f"no field {label!r} among {[one.label for one in self.fields]}"
        return found[0]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[tuple[str, str]] = []
        self._form: Form | None = None
        self._label: list[str] | None = None
        self._link: tuple[str, list[str]] | None = None
        self._area: Field | None = None
        self._select: Field | None = None
        self._unnamed: list[Field] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = Form(given.get("action", ""))
            self.forms.append(self._form)
        elif tag == "a":
            self._link = (given.get("href", ""), [])
        elif tag == "label":
            self._label, self._unnamed = [], []
        elif self._form is not None:
            self._part(self._form, tag, given)

    def _part(self, form: Form, tag: str, given: dict[str, str]) -> None:
        if tag == "button":
            form.buttons.append(
                Button("", given.get("name", ""), given.get("value", ""), given.get("class", ""))
            )
        elif tag == "option" and self._select is not None and "selected" in given:
            self._select.value = given.get("value", "")
        elif tag in ("input", "textarea", "select"):
            found = Field(
                given.get("name", ""),
                given.get("value", ""),
                given.get("type", "text") if tag == "input" else tag,
                checked="checked" in given,
                required="required" in given,
                focused="autofocus" in given,
            )
            form.fields.append(found)
            self._unnamed.append(found)
            self._area = found if tag == "textarea" else self._area
            self._select = found if tag == "select" else self._select

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "textarea":
            self._area = None
        elif tag == "a" and self._link is not None:
            self.links.append((self._link[0], " ".join("".join(self._link[1]).split())))
            self._link = None
        elif tag == "label" and self._label is not None:
            for one in self._unnamed:
                one.label = " ".join("".join(self._label).split())
            self._label = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._area.value += data.removeprefix("\n") if not self._area.value else data
            return
        if self._link is not None:
            self._link[1].append(data)
        if self._label is not None:
            self._label.append(data)
        elif self._form is not None and self._form.buttons and data.strip():
            button = self._form.buttons[-1]
            button.words = button.words or data.strip()


def forms_of(html: str) -> list[Form]:
    """The forms of a page that send something, not those that search."""
    page = _Page()
    page.feed(html)
    return [form for form in page.forms if form.action.startswith("/commands/")]


@dataclass
class Hand:
    """The person: where they are, and what it has cost them."""

    browser: Browser
    address: str = "/"
    html: str = ""
    clicks: int = 0
    typed: int = 0
    """Characters."""

    def opens(self, address: str) -> "Hand":
        """Go to an address, without a click: a bookmark, or the page that the console opens."""
        self._arrives(self.browser.client.get(address))
        return self

    @property
    def text(self) -> str:
        """What the page says, in one line."""
        return text_of(self.html)

    @property
    def links(self) -> list[tuple[str, str]]:
        """The addresses and the words of the links."""
        return self._page().links

    @property
    def forms(self) -> list[Form]:
        """The forms of the page."""
        return self._page().forms

    def follows(self, words: str) -> None:
        """Click on the link that begins with these words."""
        [address, *_] = [to for to, shown in self._page().links if shown.startswith(words)]
        self.clicks += 1
        self._arrives(self.browser.client.get(address))

    def finds(self, words: str) -> None:
        """Type into the search of each page, and press the button."""
        self.clicks += 1
        self.typed += len(words)
        self._arrives(self.browser.client.get("/orders", params={"find": words}))

    def form(self, button: str) -> Form:
        """The form with the button that begins with these words."""
        found = [
            form
            for form in self._page().forms
            if any(one.words.startswith(button) for one in form.buttons)
        ]
        assert found, f"no button {button!r} on {self.address}: {self.text[:500]}"
        return found[0]

    def sends(self, button: str, /, **typed: str) -> None:
        """Type into fields, by the first word of their labels, and press the button."""
        form = self.form(button)
        pressed = next(one for one in form.buttons if one.words.startswith(button))
        for label, text in typed.items():
            form.field(label.replace("_", " ")).value = text
            self.typed += len(text)
        self.clicks += 1
        sent = {
            one.name: one.value
            for one in form.fields
            if one.kind not in ("checkbox", "radio") or one.checked
        }
        missing = [one.label for one in form.fields if one.required and not sent.get(one.name)]
        assert missing == [], "the browser would not send this"
        if pressed.name:
            sent[pressed.name] = pressed.value
        answer = self.browser.client.post(
            form.action, data=sent, headers={"Origin": self.browser.session.address}
        )
        assert [one.status_code for one in answer.history] == [303], "a result has its own address"
        self._arrives(answer)

    def _arrives(self, answer: Response) -> None:
        assert answer.status_code == 200, text_of(answer.text)
        self.address, self.html = str(answer.url.raw_path, "ascii"), answer.text

    def _page(self) -> _Page:
        page = _Page()
        page.feed(self.html)
        return page
