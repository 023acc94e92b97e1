"""Serving the console of a team, on the address that was named, behind a load balancer."""

import time
from collections.abc import Callable

import uvicorn

from roundsman_console.base.clock import moment
from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web.access.identity_keys import IdentityKeys, keys_of_region
from roundsman_console.faces.web.access.team import Team, TeamSettings
from roundsman_console.faces.web.application import application
from roundsman_console.faces.web.deadlines import limit_calls
from roundsman_console.faces.web.server import bound, prepare
from roundsman_console.faces.web.whereabouts import Colour, find_whereabouts
from roundsman_console.inspector import Inspector

KEEP_ALIVE = 75
"""Seconds for which a connection without requests stays open: longer than the 60 that are usual at
a load balancer, which would answer 502 if the console closed one first."""
GRACE = 10
"""Seconds that requests have when the process is told to end."""


def serve_team(
    inspector: Inspector,
    settings: TeamSettings,
    *,
    read_only: bool,
    opened: Callable[[], None],
    report: Callable[[str], None],
    journal: Callable[[str], None],
    colour: Colour | None = None,
) -> None:
    """Serve the console to everybody whom the load balancer signs in, until the process is ended.

    `opened` is called once the socket listens, `report` with the reasons of refusals, and `journal`
    with a line for each command that was carried out (`Team`). Raises InspectorError if the address
    cannot be used.
    """
    limit_calls()
    prepare(inspector)
    keys = IdentityKeys(keys_of_region(settings.region), moment)
    team = Team(
        settings.address,
        settings.trust,
        keys.key_of,
        now=time.time,
        report=report,
        journal=journal,
        read_only=read_only,
    )
    try:
        listener = bound(settings.host, settings.port)
    except OSError as error:
        raise InspectorError(
            f"{settings.host}, port {settings.port} cannot be used ({error.strerror}). Name "
            "another with --serve."
        ) from error
    with listener:
        config = uvicorn.Config(
            application(inspector, team, find_whereabouts(inspector.stack, colour)),
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,  # nothing depends on who the client of the load balancer is
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
        )
        opened()
        uvicorn.Server(config).run(sockets=[listener])
