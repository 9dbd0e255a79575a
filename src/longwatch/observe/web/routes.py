"""The addresses of the page. Each is one call of a reader; the only one that changes anything makes a durable request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from longwatch import __version__
from longwatch.kernel import request as wishes
from longwatch.kernel.errors import LongwatchError, RefusedError
from longwatch.kernel.watch import Watch
from longwatch.observe import asking, finding, timings, verifying
from longwatch.observe.web import answers, description, live
from longwatch.observe.web.answers import Card, Listing, Problem, Wish

STATIC = Path(__file__).with_name("static")
_WISH_BYTES = 4096


class NoSuchWatchError(RefusedError):
    """An address names a watch that is none of the page's."""


Reader = Callable[[Watch, Request], object]


class Site:
    """The page of some folders. Watches that are made later are found, too."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def watches(self) -> Mapping[str, Watch]:
        """Return the watches that are there now."""
        return finding.watches(self._folders)

    def listing(self) -> Listing:
        """Return all watches, those that need somebody first."""
        cards: list[Card] = []
        broken: list[tuple[str, str]] = []
        for name, watch in self.watches().items():
            try:
                cards.append(answers.card(name, watch))
            except LongwatchError as error:
                broken.append((str(watch.root), str(error)))
        cards.sort(key=lambda one: (one.health.level.rank, one.name))
        return Listing(version=__version__, watches=tuple(cards), broken=tuple(broken))

    def watch(self, request: Request) -> Watch:
        """Return the watch that an address names.

        Raises:
            NoSuchWatchError: it is none of the page's.
        """
        name = str(request.path_params["watch"])
        found = self.watches().get(name)
        if found is None:
            raise NoSuchWatchError(f"{name}: this page has no such watch")
        return found


def application(folders: Sequence[Path]) -> Starlette:
    """Return the page, without its door."""
    site = Site(folders)
    watch = "/api/watches/{watch}"
    return Starlette(
        routes=[
            Route("/", _index),
            Route("/api/watches", _whole(lambda _: site.listing())),
            Route("/api/openapi.json", _whole(lambda _: description.document())),
            Route(watch, _one(site, _card)),
            Route(f"{watch}/board", _one(site, lambda found, _: answers.board(found))),
            Route(f"{watch}/patches/{{name}}", _one(site, _patch)),
            Route(f"{watch}/events", _one(site, _events)),
            Route(f"{watch}/timings", _one(site, lambda found, _: timings.read(found))),
            Route(f"{watch}/verification", _one(site, lambda found, _: verifying.verify(found))),
            Route(
                f"{watch}/logs",
                _one(site, lambda found, asked: answers.logs(found, asked.query_params.get("of", ""))),
            ),
            Route(
                f"{watch}/log",
                _one(site, lambda found, asked: answers.excerpt(found, asked.query_params.get("name", ""))),
            ),
            Route(f"{watch}/stream", _stream(site)),
            Route(f"{watch}/requests", _ask(site), methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
    )


async def _index(_: Request) -> Response:
    return FileResponse(STATIC / "index.html")


Endpoint = Callable[[Request], Awaitable[Response]]


def _whole(read: Callable[[Request], object]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await _answered(read, request)

    return endpoint


def _one(site: Site, read: Reader) -> Endpoint:
    return _whole(lambda request: read(site.watch(request), request))


async def _answered(read: Callable[[Request], object], request: Request) -> Response:
    try:
        return _json(await run_in_threadpool(read, request))
    except LongwatchError as error:
        return _json(Problem(str(error)), 404 if isinstance(error, NoSuchWatchError) else 409)


def _json(value: object, code: int = 200) -> Response:
    return Response(msgspec.json.encode(value, enc_hook=str), code, media_type="application/json")


def _card(watch: Watch, request: Request) -> Card:
    return answers.card(str(request.path_params["watch"]), watch)


def _patch(watch: Watch, request: Request) -> msgspec.Struct:
    return answers.patch(watch, str(request.path_params["name"]))


def _events(watch: Watch, request: Request) -> answers.Page:
    query = request.query_params
    return answers.page(
        watch,
        before=_number(query.get("before"), 2**62),
        kind=query.get("kind", ""),
        text=query.get("text", ""),
        limit=_number(query.get("limit"), 100),
    )


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else default


def _stream(site: Site) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            watch = await run_in_threadpool(site.watch, request)
        except LongwatchError as error:
            return _json(Problem(str(error)), 404)
        # A client that lost its connection says which event it saw last.
        last = request.headers.get("last-event-id") or request.query_params.get("after")
        messages = live.stream(str(request.path_params["watch"]), watch, _number(last, 0))
        return StreamingResponse(messages, media_type="text/event-stream")

    return endpoint


def _ask(site: Site) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _WISH_BYTES:
                return _json(Problem("a request is a few words, not this much"), 413)
        try:
            wish = msgspec.json.decode(body, type=Wish)
        except msgspec.MsgspecError as error:
            return _json(Problem(f"this is no request: {error}"), 400)
        return await _answered(lambda asked: asking.ask(site.watch(asked), _request(wish)), request)

    return endpoint


def _request(wish: Wish) -> wishes.Request:
    return wishes.Request(verb=wish.verb, accept=wish.accept, after_step=wish.after_step)
