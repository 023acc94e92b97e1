"""The fields by which Amazon Q Developer in chat applications shows an alert in Slack or Teams.

It shows a message of SNS only if the message has its format, "custom notifications" in AWS's
documentation of it. Other subscribers ignore the fields.

Parts of the text come from outside the system. Chats read markup: links, mentions of everybody,
formats. So the title has no character of markup, and the text is in a code block that nothing in it
can end.
"""

from collections.abc import Mapping

from roundsman.model.json import Json
from roundsman.wire.alert_email import sanitize

VERSION, SOURCE, TEXT_TYPE = "1.0", "custom", "client-markdown"
"""The only values that are allowed."""
FENCE = "```"
MARKUP = str.maketrans(dict.fromkeys("*_~`<>[]|@#!", " ") | {"&": "+"})
"""What may begin a format, a link or a mention in Slack or Teams."""
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""Slack reads these three characters as markup, also in a code block."""


def chat_fields(
    kind: str, thread: str, *, title: str, summary: str, text: str
) -> Mapping[str, Json]:
    """Return the fields of an alert of this kind.

    Alerts with the same `thread` are shown as one thread, if the channel allows threads.
    """
    inert = text.replace("`", "'").translate(ENTITIES)
    return {
        "version": VERSION,
        "source": SOURCE,
        "content": {
            "textType": TEXT_TYPE,
            "title": _plain(title),
            "description": f"{FENCE}\n{inert.strip()}\n{FENCE}",
        },
        "metadata": {"threadId": thread, "summary": _plain(summary), "eventType": kind},
    }


def _plain(text: str) -> str:
    return sanitize(text).translate(MARKUP)
