"""The page of the playground, with a content security policy that allows only the pinned files.

The files of GraphiQL are served from this machine if they are installed, and loaded from a CDN otherwise. In both cases
the browser checks their hashes.
"""

import html
import string
from dataclasses import asdict

import orjson
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from server.playground.assets import ASSETS, CDN, HERE, all_installed, installed
from server.playground.examples import OPENED, examples
from server.playground.visitors import Visitors

OWN_FILES = ("playground.js", "bar.js", "dom.js", "graphiql.js", "live-events.js", "playground.css")
LOOPBACK = ("127.0.0.1", "::1")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class Playground:
    """The playground's page and files. In the demo, the page is logged in as one of the visitors.

    A visitor's token is sent only to clients on this machine, and only to this server's own pages, so a foreign site
    whose host name resolves to this machine does not get it.
    """

    def __init__(self, visitors: Visitors | None = None) -> None:
        self._visitors = visitors
        self.local = all_installed()
        sources = [f"playground/assets/{asset}" if self.local else f"{CDN}/{asset}" for asset in ASSETS]
        assets = [{"url": url, "integrity": digest} for url, digest in zip(sources, ASSETS.values(), strict=True)]
        page = (HERE / "playground.html").read_text(encoding="utf-8")
        self._page = string.Template(page).substitute(assets=html.escape(orjson.dumps(assets).decode()))
        remote = "" if self.local else " ".join(sources)
        self._policy = (
            f"default-src 'none'; script-src 'self' {remote}; style-src 'self' {remote}; img-src 'self' data:; "
            "font-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )

    def page(self) -> Response:
        """Return the page with its content security policy."""
        headers = {"Content-Security-Policy": self._policy, "Referrer-Policy": "no-referrer"}
        return Response(self._page, headers=headers, media_type="text/html")

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the page and its files."""
        return [
            Route("/playground", self._get_page),
            Route("/playground/start.json", self._get_start),
            Route("/playground/session.json", self._get_session),
            Route("/playground/assets/{asset:path}", self._get_asset),
            Route("/playground/{name}", self._get_own),
        ]

    async def _get_page(self, request: Request) -> Response:
        return self.page()

    async def _get_start(self, request: Request) -> Response:
        """Return the example operations and, in the demo, the users that the page can log in as."""
        people = self._visitors.people if self._visitors and _from_this_machine(request) else ()
        return _json(
            {
                "examples": [asdict(example) for example in examples()],
                "opened": OPENED,
                "users": [{"login": person.login, "name": person.name, "bio": person.bio} for person in people],
            }
        )

    async def _get_session(self, request: Request) -> Response:
        """Return the token of a visitor, and variables for the examples that need ids."""
        if not self._visitors or not _from_this_machine(request):
            return _json({"error": "Only pages of this server that are opened on its own machine can log in."}, 403)
        login = request.query_params.get("login", "")
        token = await self._visitors.token(login)
        if token is None:
            return _json({"error": "This user is not in the demo, or was deleted or suspended."}, 404)
        return _json({"login": login, "token": token, "variables": await self._visitors.variables(login)})

    async def _get_asset(self, request: Request) -> Response:
        asset = request.path_params["asset"]
        path = installed(asset) if asset in ASSETS and self.local else None
        if path is None:
            return Response(status_code=404)
        return FileResponse(path, headers={"Cache-Control": "max-age=31536000, immutable"})

    async def _get_own(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in OWN_FILES:
            return Response(status_code=404)
        return FileResponse(HERE / name, headers={"Cache-Control": "no-cache"})


def _json(value: object, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def _from_this_machine(request: Request) -> bool:
    if "x-forwarded-for" in request.headers or "forwarded" in request.headers:
        return False  # a proxy on this machine forwards requests from other machines
    host = request.headers.get("host", "")
    name = host.rpartition(":")[0] or host
    own_page = request.headers.get("origin", f"http://{host}").partition("://")[2] == host
    return bool(request.client and request.client.host in LOOPBACK and name in LOCAL_HOSTS and own_page)
