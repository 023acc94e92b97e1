"""Serving the console: a socket on 127.0.0.1, the link to open, and the end by Ctrl-C."""

import socket
from collections.abc import Callable

import uvicorn

from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web.access.hosts import LOOPBACK, kept_host, state_folder, usual_port
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.deadlines import limit_calls
from roundsman_console.faces.web.guide import Guide
from roundsman_console.faces.web.whereabouts import Colour, Whereabouts, find_whereabouts
from roundsman_console.inspector import Inspector

ADDRESS = "127.0.0.1"
"""Where the console of one person listens, and nowhere else: it has the person's AWS rights."""
NEXT_PORTS = 10
"""So many ports are tried, the usual one of the stack first."""


def serve(
    inspector: Inspector,
    *,
    port: int | None,
    read_only: bool,
    opened: Callable[[BrowserSession], None],
    loopback: bool = False,
    colour: Colour | None = None,
) -> None:
    """Serve the console until Ctrl-C. `port` 0 takes a free one; None takes the stack's usual one,
    or the next that is free.

    With `loopback`, its host is 127.0.0.1, for browsers that find no other. `opened` is called once
    the socket listens. Raises InspectorError if the port is in use.
    """
    limit_calls()
    serve_as_is(
        inspector,
        port=port,
        read_only=read_only,
        opened=opened,
        loopback=loopback,
        where=lambda: find_whereabouts(inspector.stack, colour),
    )


def serve_as_is(
    inspector: Inspector,
    *,
    port: int | None,
    read_only: bool,
    opened: Callable[[BrowserSession], None],
    loopback: bool,
    where: Callable[[], Whereabouts],
    guide: Guide | None = None,
) -> None:
    """Serve the console like `serve`, with the clients of AWS as this process has them.

    `where` returns what the strip on top of each page says; `guide` leads the visitor. Raises
    InspectorError if the port is in use.
    """
    stack = inspector.stack
    prepare(inspector)
    with usual_listener(stack.name) if port is None else listening(port) as listener:
        host = LOOPBACK if loopback else kept_host(state_folder(), stack.arn or stack.name)
        session = BrowserSession(listener.getsockname()[1], host=host, read_only=read_only)
        config = uvicorn.Config(
            application(inspector, session, where(), guide),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,  # a page that is being read would hold up Ctrl-C
        )
        opened(session)
        uvicorn.Server(config).run(sockets=[listener])


def usual_listener(stack: str) -> socket.socket:
    """Return a socket on the usual port of a stack's console, or on the next one that is free.

    Raises InspectorError if none of NEXT_PORTS ports is free.
    """
    first = usual_port(stack)
    for port in range(first, first + NEXT_PORTS):
        try:
            return listening(port)
        except InspectorError:
            continue
    raise InspectorError(
        f"The ports {first} to {first + NEXT_PORTS - 1} of 127.0.0.1 cannot be used. Name another "
        "with --port; 0 takes a free one."
    )


def listening(port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1. Raises InspectorError if the port is in use."""
    try:
        return bound(ADDRESS, port)
    except OSError as error:
        raise InspectorError(
            f"Port {port} of 127.0.0.1 cannot be used ({error.strerror}). Name another with "
            "--port, or leave it out for the usual one."
        ) from error


def bound(address: str, port: int) -> socket.socket:
    """Return a socket that listens on an IP address. Raises OSError if it cannot."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def prepare(inspector: Inspector) -> None:
    """Create the clients of AWS before the threads of the pages do: boto3 cannot create two at
    once.
    """
    stack = inspector.stack
    for name in (
        *("tasks", "records", "plans", "holds", "board", "groups", "leases", "ping"),
        *("sqs", "lambda_client", "cloudwatch", "sns"),
    ):
        getattr(stack, name)
