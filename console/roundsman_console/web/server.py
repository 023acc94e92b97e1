"""Serving the console: a socket on 127.0.0.1, the link to open, and the end by Ctrl-C."""

import socket
from collections.abc import Callable

import uvicorn

from roundsman_console.errors import InspectorError
from roundsman_console.inspector import Inspector
from roundsman_console.web.application import application
from roundsman_console.web.session import Session

ADDRESS = "127.0.0.1"  # never another: whoever reaches the console has the operator's AWS rights


def serve(
    inspector: Inspector, *, port: int, read_only: bool, opened: Callable[[Session], None]
) -> None:
    """Serve the console until Ctrl-C. `port` 0 takes a free one.

    `opened` is called once the socket listens. Raises InspectorError if the port is in use.
    """
    prepare(inspector)
    with listening(port) as listener:
        session = Session(listener.getsockname()[1], read_only)
        config = uvicorn.Config(
            application(inspector, session),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,  # live pages that are open would hold up Ctrl-C
        )
        opened(session)
        uvicorn.Server(config).run(sockets=[listener])


def listening(port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1. Raises InspectorError if the port is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InspectorError(
            f"Port {port} of 127.0.0.1 cannot be used ({error.strerror}). Name another with "
            "--port, or leave it out for a free one."
        ) from error
    return listener


def prepare(inspector: Inspector) -> None:
    """Create the clients of AWS before the threads of the pages do: boto3 cannot create two at
    once.
    """
    stack = inspector.stack
    for name in (
        *("tasks", "records", "plans", "holds", "board", "groups", "leases"),
        *("sqs", "lambda_client", "cloudwatch", "sns"),
    ):
        getattr(stack, name)
