"""The ASGI application of the console: its routes, its checks and its answers to errors.

Each page is a function that reads what it shows and returns the values of its template. It runs in
a thread of its own, because it waits for AWS.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roundsman_console.acts.actor import act_for
from roundsman_console.base.errors import (
    USAGE,
    ConsoleError,
    InvalidArgument,
    NotFound,
    sentence_of,
)
from roundsman_console.base.unread import Unread, causes
from roundsman_console.faces.web import form_registry as registry
from roundsman_console.faces.web import results, work
from roundsman_console.faces.web.access.one_browser import ASK_AGAIN, USED_LINK, BrowserSession
from roundsman_console.faces.web.access.session import (
    FORM_TOKEN,
    GO,
    SECURITY_HEADERS,
    SHOWN,
    STALE_FORM,
    Denial,
    Door,
    begin_request,
    current_session,
)
from roundsman_console.faces.web.addresses import address_of
from roundsman_console.faces.web.aws_reachable import AwsReachable, answer_of, aws_of
from roundsman_console.faces.web.deadlines import read_in_time
from roundsman_console.faces.web.guide import Guide
from roundsman_console.faces.web.live import LIVE_SECONDS
from roundsman_console.faces.web.pages import (
    agent,
    agents,
    bulk,
    cost,
    difference,
    doctor,
    export,
    order,
    orders,
    overview,
    schedules,
    shift,
    workflows,
)
from roundsman_console.faces.web.pages import find as search
from roundsman_console.faces.web.pages import group as groups
from roundsman_console.faces.web.pages import set_aside as dead_letters
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS, Part
from roundsman_console.faces.web.templates import Templates
from roundsman_console.faces.web.time_style import TimeStyleMiddleware, choose_times
from roundsman_console.faces.web.unchanged import only_changed
from roundsman_console.faces.web.whereabouts import Whereabouts
from roundsman_console.facts.agent.reading import agent_names
from roundsman_console.inspector import Inspector

STATIC = Path(__file__).with_name("static")
GUIDED_SECONDS = 2
"""The longest time from one reading of a live page to the next while a guide leads the visitor."""
COMMANDS = "/commands/"
"""The beginning of the addresses of forms."""
LARGEST_FORM = 1_100_000  # bytes: an order event of SQS's size, and its frame
TOO_LARGE = Denial(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form is too large.")
UNREADABLE = Denial(HTTPStatus.BAD_REQUEST, "The form cannot be read.")

HEADINGS = {
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.BAD_REQUEST: "Not a valid request",
    HTTPStatus.BAD_GATEWAY: "Cannot be read",
}
"""The headings of error pages whose phrase of HTTP would not help a person."""

Values: TypeAlias = Mapping[str, object]
ReadPage: TypeAlias = Callable[[Inspector, Mapping[str, str]], Values]
"""Reads a page's values. Its parameters are those of the path and of the query together."""


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page: its path, the function that reads it, and its template."""

    path: str
    read: ReadPage
    template: str


PAGES = (
    PageRoute("/", overview.read, "overview.html"),
    PageRoute("/orders", orders.read, "orders.html"),
    PageRoute("/find", search.read, "find.html"),
    PageRoute("/export", export.read, "export.html"),
    PageRoute("/orders/{order}", order.read, "order.html"),
    PageRoute("/orders/{order}/difference", difference.read, "difference.html"),
    PageRoute("/groups", groups.read_all, "groups.html"),
    PageRoute("/groups/{group}", groups.read, "group.html"),
    PageRoute("/bulk", bulk.read_all, "bulk_runs.html"),
    PageRoute("/bulk/{run}", bulk.read, "bulk_run.html"),
    PageRoute("/shift", shift.read, "shift.html"),
    PageRoute("/dead-letters", dead_letters.read_all, "dead_letters.html"),
    PageRoute("/rejected", dead_letters.read_rejected, "rejected.html"),
    PageRoute("/agents", agents.read, "agents.html"),
    PageRoute("/agents/{agent}", agent.read, "agent.html"),
    PageRoute("/workflows", workflows.read_all, "workflows.html"),
    PageRoute("/workflows/{plan}", workflows.read, "workflow.html"),
    PageRoute("/schedules", schedules.read, "schedules.html"),
    PageRoute("/cost", cost.read, "cost.html"),
    PageRoute("/progress/{work}", work.read, "work.html"),
    PageRoute("/results/{result}", results.read, "command.html"),
    PageRoute("/doctor", doctor.read, "doctor.html"),
)
"""The pages that only show. Those that are live are read again every LIVE_SECONDS."""


class Console:
    """What the routes share: the stack, whether its AWS is reached, and the templates."""

    def __init__(
        self,
        inspector: Inspector,
        where: Whereabouts,
        guide: Guide | None = None,
        aws: AwsReachable | None = None,
    ) -> None:
        self.inspector = inspector
        self.aws = aws or aws_of(inspector, where)
        self.templates = Templates(where, guide, self.aws.notes)
        self._guided = guide is not None

    async def answer(self, template: str, read: Callable[[], Values], *, path: str) -> Response:
        """Read a page in a thread and render it; an error becomes a page that says it in words.

        Values with an address in GOES_TO send the browser there. A page that is not read in time is
        such an error.
        """
        return await self._rendered(template, read_in_time(read), path=path)

    async def command_answer(
        self, template: str, read: Callable[[], Values], *, path: str
    ) -> Response:
        """Carry out a command in a thread and render its page, as `answer` does.

        It has no deadline: a command that was begun is not given up.
        """
        return await self._rendered(template, run_in_threadpool(read), path=path)

    async def _rendered(self, template: str, read: Awaitable[Values], *, path: str) -> Response:
        try:
            values = await read
        except AWS_ERRORS as error:
            return self.error(status_of(error), sentence_of(error), path=path)
        elsewhere = values.get(registry.GOES_TO)
        if elsewhere:
            return RedirectResponse(str(elsewhere), HTTPStatus.SEE_OTHER)
        # A page that has not read everything yet says itself how soon it is read again.
        every, sooner = self._read_every(path), values.get("every")
        if every is not None and isinstance(sooner, int | float):
            every = min(every, sooner)
        shown = {**values, "causes": causes(unread_of(values)), "every": every}
        return HTMLResponse(self.templates.render(template, shown, path=path))

    def error(self, status: HTTPStatus, sentence: str, *, path: str = "") -> HTMLResponse:
        """Return a page with one sentence."""
        values = {
            "status": status,
            "heading": HEADINGS.get(status, status.phrase),
            "sentence": sentence[:1].upper() + sentence[1:],
            # What could not be read is tried again; what is not there is not.
            "every": self._read_every(path) if status == HTTPStatus.BAD_GATEWAY else None,
        }
        return HTMLResponse(self.templates.render("error.html", values, path=path), int(status))

    def _read_every(self, path: str) -> float | None:
        every = read_every(path)
        return every if every is None or not self._guided else min(every, GUIDED_SECONDS)

    def denied(self, denial: Denial) -> HTMLResponse:
        """Return the page of a request that is not allowed; it shows nothing of the stack."""
        return self.bare(denial.status, denial.sentence)

    def bare(self, status: HTTPStatus, sentence: str) -> HTMLResponse:
        """Return a page with one sentence that shows nothing of the stack."""
        values = {"heading": HEADINGS.get(status, status.phrase), "sentence": sentence}
        return HTMLResponse(self.templates.render_bare("bare.html", values), int(status))


def unread_of(values: Values) -> list[Unread]:
    """Return what could not be read of a page: of its parts, and what it lists as `unread`."""
    parts = (one for one in values.values() if isinstance(one, Part))
    listed = values.get("unread", ())
    more = [one for one in listed if isinstance(one, Unread)] if isinstance(listed, list) else []
    return [*(one for part in parts for one in part.unread), *more]


def status_of(error: Exception) -> HTTPStatus:
    """Return the status of the page that shows an error."""
    if isinstance(error, NotFound):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, InvalidArgument):
        return HTTPStatus.BAD_REQUEST
    if isinstance(error, ConsoleError) and error.code == USAGE:
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.BAD_GATEWAY


def application(
    inspector: Inspector,
    door: Door,
    where: Whereabouts | None = None,
    guide: Guide | None = None,
    aws: AwsReachable | None = None,
) -> Starlette:
    """Return the console of one stack, for one browser or for a team.

    `where` is None if nothing but the name of the stack is known. `guide` leads its visitor; None
    for the console of a stack. `aws` says whether AWS is reached; None asks that of the stack.
    """
    console = Console(inspector, where or Whereabouts(inspector.stack.name), guide, aws)
    app = Starlette(
        routes=[
            *(
                [Route("/session", _open_session(console, door))]
                if isinstance(door, BrowserSession)
                else []
            ),
            *(Route(page.path, _shown(console, page), methods=["GET"]) for page in PAGES),
            *(Route(page.path, _gone_on, methods=["POST"]) for page in PAGES),
            Route("/alive", _alive(console)),
            Route("/export/orders", _download(console)),
            Route("/orders/{order}/record", _record(console)),
            Route("/live", _live(console)),
            Route("/times", choose_times),
            Route("/commands/{command}", _command_form(console), methods=["GET"]),
            Route("/commands/{command}", _command_sent(console), methods=["POST"]),
            *([Route("/guide", _guided(console, guide), methods=["POST"])] if guide else []),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={404: _not_found(console)},
    )
    app.add_middleware(DoorMiddleware, console=console, door=door)
    app.add_middleware(TimeStyleMiddleware)
    return app


class DoorMiddleware:
    """Refuses each request that the door does not let in, and adds the security headers."""

    def __init__(self, app: ASGIApp, console: Console, door: Door) -> None:
        self._app = app
        self._console = console
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [
                    (name.lower().encode(), text.encode())
                    for name, text in SECURITY_HEADERS.items()
                ]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        headers = Headers(scope=scope)
        found = await self._door.enter(scope["method"], scope["path"], headers)
        app: ASGIApp = self._app
        if found is ASK_AGAIN:
            app = HTMLResponse(self._console.templates.render_bare("continue.html", {}))
        elif isinstance(found, Denial):
            app = self._console.denied(found)
            is_own_form = (
                scope["method"] == "POST"
                and scope["path"].startswith(COMMANDS)
                and headers.get("origin") == self._door.address
            )
            if found.keeps_form and is_own_form:
                app = await _kept_form(self._console, Request(scope, receive), found)
        else:
            begin_request(found)
            act_for(found.person or None)
        await app(scope, receive, send_with_headers)


Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def _open_session(console: Console, session: BrowserSession) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        # A program that only looks at a link sends HEAD, which must not use the link up.
        token = request.query_params.get("token", "") if request.method == "GET" else ""
        cookie = session.redeem(token)
        if cookie is None:
            return console.denied(USED_LINK)
        # A page instead of a redirect: after a link from elsewhere, a browser would not send the
        # cookie, which is SameSite=Strict, with the redirected request.
        place = request.query_params.get("place", "")
        agents = agent_names(console.inspector.stack.outputs, set())
        page = address_of(place, agents) if place else "/"
        opened = console.templates.render_bare("opened.html", {"page": page})
        return HTMLResponse(opened, headers={"Set-Cookie": cookie})

    return endpoint


async def _gone_on(request: Request) -> Response:
    """Go on from a link of another site to the page that it leads to."""
    return RedirectResponse(_path_of(request), HTTPStatus.SEE_OTHER)


def _alive(console: Console) -> Endpoint:
    """Say to an open page that the console still runs, and whether AWS is reached."""

    async def endpoint(request: Request) -> Response:
        if request.method == "HEAD":  # whether this browser is still let in, before it sends a form
            return Response(status_code=HTTPStatus.NO_CONTENT)
        reached = await console.aws.ask()
        return JSONResponse(answer_of(reached, console.aws.notes()))

    return endpoint


def _parameters(request: Request) -> dict[str, str]:
    return {**request.query_params, **request.path_params}


def _path_of(request: Request) -> str:
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


def _shown(console: Console, page: PageRoute) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = _parameters(request)
        if page.path == "/orders":
            try:
                shorter = orders.short_address(page.path, request.query_params.multi_items())
            except AWS_ERRORS as error:
                return console.error(status_of(error), sentence_of(error), path=_path_of(request))
            if shorter is not None:
                return RedirectResponse(shorter, HTTPStatus.SEE_OTHER)
        return await console.answer(
            page.template, lambda: page.read(console.inspector, given), path=_path_of(request)
        )

    return endpoint


def _download(console: Console) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = _parameters(request)
        try:
            text = await run_in_threadpool(lambda: export.download(console.inspector, given))
        except AWS_ERRORS as error:
            return console.error(status_of(error), sentence_of(error), path=_path_of(request))
        name = export.file_name(console.inspector)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(text, media_type="application/jsonl", headers=headers)

    return endpoint


def _record(console: Console) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        order_id = request.path_params["order"]
        try:
            name, text = await run_in_threadpool(
                lambda: order.record_file(console.inspector, order_id)
            )
        except AWS_ERRORS as error:
            return console.error(status_of(error), sentence_of(error), path=_path_of(request))
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="application/json", headers=headers)

    return endpoint


def _live(console: Console) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        wanted = request.query_params.get("page", "")
        found = live_page(wanted)
        if found is None:
            return console.error(HTTPStatus.NOT_FOUND, "There is no such live page.")
        page, given = found
        answer = await console.answer(
            page.template, lambda: page.read(console.inspector, given), path=wanted
        )
        return only_changed(answer, request.headers.get("If-None-Match", ""))

    return endpoint


def read_every(address: str) -> float | None:
    """Return the seconds from one reading of this page to the next; None if it is not live."""
    found = live_page(address)
    return None if found is None else LIVE_SECONDS[found[0].path]


def live_page(address: str) -> tuple[PageRoute, dict[str, str]] | None:
    """Return the live page with this path and query, and its parameters; None if there is none."""
    path, _, query = address.partition("?")
    scope: Scope = {"type": "http", "path": path, "method": "GET", "headers": []}
    for page in PAGES:
        if page.path not in LIVE_SECONDS:
            continue
        matched, found = Route(page.path, lambda _: None).matches(scope)
        if matched.value:
            return page, {**dict(parse_qsl(query)), **found["path_params"]}
    return None


def _command_form(console: Console) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        given = _parameters(request)
        return await console.answer(
            "command.html",
            lambda: registry.read_form(console.inspector, given),
            path=_path_of(request),
        )

    return endpoint


async def _kept_form(console: Console, request: Request, denial: Denial) -> Response:
    """Return the page with a form of this console that came without a session: it has what was
    typed, and sends it when the person who typed it says so.
    """
    form = await _fields_of(request)
    if isinstance(form, Denial):
        return console.denied(denial)
    fields = {name: form[name] for name in form if name not in (FORM_TOKEN, GO, SHOWN)}
    values = {"denial": denial, "path": request.url.path, "fields": fields}
    page = console.templates.render_bare("kept_form.html", values)
    return HTMLResponse(page, int(denial.status))


async def _fields_of(request: Request) -> dict[str, str] | Denial:
    """Return the fields of a form, or why it is refused."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            return TOO_LARGE
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
    except ValueError:
        return UNREADABLE


def _command_sent(console: Console) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        form = await _fields_of(request)
        if isinstance(form, Denial):
            return console.error(form.status, form.sentence)
        denial = current_session().denial_of_form(form.pop(FORM_TOKEN, ""))
        given = {**form, **request.path_params}
        if denial is not None and given["command"] not in registry.commands():
            return console.denied(denial)

        def read() -> Values:
            if denial is not None:
                return registry.show_again(console.inspector, given, STALE_FORM)
            return registry.carry_out(console.inspector, given, current_session())

        return await console.command_answer("command.html", read, path=_path_of(request))

    return endpoint


def _guided(console: Console, guide: Guide) -> Endpoint:
    """Press the button of the guide, and go on to what is next."""

    async def endpoint(request: Request) -> Response:
        form = await _fields_of(request)
        if isinstance(form, Denial):
            return console.error(form.status, form.sentence)
        denial = current_session().denial_of_form(form.get(FORM_TOKEN, ""))
        if denial is not None:
            return console.denied(denial)
        await run_in_threadpool(guide.press)
        steps = await run_in_threadpool(guide.steps)
        page = next((step.address for step in steps if not step.done and step.address), "/")
        return RedirectResponse(page, HTTPStatus.SEE_OTHER)

    return endpoint


def _not_found(console: Console) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handler(request: Request, _error: Exception) -> Response:
        if request.url.path.startswith("/static/"):  # which needs no cookie
            return console.bare(HTTPStatus.NOT_FOUND, "There is no such file.")
        return console.error(HTTPStatus.NOT_FOUND, "There is no such page.", path="")

    return handler
