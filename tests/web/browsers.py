"""A browser without a screen: it asks for pages and sends the forms on them."""

import re
from dataclasses import dataclass
from html.parser import HTMLParser

from httpx2 import Response
from starlette.testclient import TestClient

from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.access.session import FORM_TOKEN
from roundsman_console.faces.web.work import Work, works_of
from roundsman_console.inspector import Inspector
from tests.console.operators import Operator

PORT = 8901


@dataclass(frozen=True)
class Browser:
    client: TestClient
    session: BrowserSession
    operator: Operator
    inspector: Inspector

    def page(self, address: str, status: int = 200) -> str:
        """The text of a page, without its markup and with single spaces."""
        return text_of(self.html(address, status))

    def html(self, address: str, status: int = 200) -> str:
        answer = self.client.get(address)
        assert answer.status_code == status, text_of(answer.text)
        return answer.text

    def sends(self, command: str, status: int = 200, /, **fields: str) -> str:
        """The text of the page after a form was sent."""
        answer = self.posts(command, **fields)
        assert answer.status_code == status, text_of(answer.text)
        return text_of(answer.text)

    def carries_out(self, command: str, /, **fields: str) -> str:
        """The text of the page after a form was sent, and sent again as it was shown."""
        shown = re.search(r'name="shown" value="([^"]+)"', self.posts(command, **fields).text)
        assert shown is not None, "no decision was shown"
        return self.sends(command, **fields, go="yes", shown=shown[1])

    def work(self, command: str, /, **fields: str) -> Work:
        """The work that a form begins when it is sent as it was shown, after its end."""
        shown = re.search(r'name="shown" value="([^"]+)"', self.posts(command, **fields).text)
        assert shown is not None, "no decision was shown"
        answer = self.posts(command, **fields, go="yes", shown=shown[1])
        [moved] = answer.history
        assert moved.status_code == 303
        found = works_of(self.inspector).find(moved.headers["Location"].rpartition("/")[2])
        assert found.thread is not None
        found.thread.join()
        return found

    def posts(self, command: str, /, **fields: str) -> Response:
        return self.client.post(
            f"/commands/{command}",
            data={FORM_TOKEN: self.session.form_token, **fields},
            headers={"Origin": self.session.address},
        )


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def text_of(html: str) -> str:
    parser = _Text()
    parser.feed(html)
    return " ".join(" ".join(parser.parts).split())
