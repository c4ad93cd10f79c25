"""The playground: a page with GraphiQL, under a content security policy that allows only the pinned files.

The files are served from `node_modules` in this folder if they are installed there, and loaded from a CDN otherwise.
In both cases the browser checks them against the hashes below. No third-party source is part of Fanline.
"""

import string
from collections.abc import Mapping
from pathlib import Path

import orjson
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from server.playground.visitor import Visitor

HERE = Path(__file__).parent
FIRST_EXAMPLES = ("home", "followers-with-relations", "publish", "follow", "live")
PACKAGED = HERE / "examples"  # in a wheel
EXAMPLES = PACKAGED if PACKAGED.is_dir() else HERE.parents[1] / "examples"  # else in the checkout
CDN = "https://cdn.jsdelivr.net/npm"
ASSETS = {
    "react@18.3.1/umd/react.production.min.js": (
        "sha384-DGyLxAyjq0f9SPpVevD6IgztCFlnMF6oW/XQGmfe+IsZ8TqEiDrcHkMLKI6fiB/Z"
    ),
    "react-dom@18.3.1/umd/react-dom.production.min.js": (
        "sha384-gTGxhz21lVGYNMcdJOyq01Edg0jhn/c22nsx0kyqP0TxaV5WVdsSH1fSDUf5YJj1"
    ),
    "graphiql@4.1.2/graphiql.min.js": ("sha384-9XdHu7ajgGJziD4J1zNBKQ842Q/+zZfDv+ib1eMhZWBH6hPAs806x+Jbcf0yNO6B"),
    "graphiql@4.1.2/graphiql.min.css": ("sha384-1el1QShFBnnXTx9x/Cprg82hZWKt0ry29OAYIXt05swbi0KcZDFoj0CWguMpopJr"),
}
OWN_FILES = ("playground.js", "playground.css")
LOOPBACK = ("127.0.0.1", "::1")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class Playground:
    """The playground's page and files. In the demo, the page is logged in as `visitor`.

    The visitor's token is sent only to clients on this machine and to pages of this server, which excludes a site
    whose host name resolves to this machine.
    """

    def __init__(self, visitor: Visitor | None = None) -> None:
        self._visitor = visitor
        self.local = all(_installed(asset).is_file() for asset in ASSETS)
        sources = [f"playground/assets/{asset}" if self.local else f"{CDN}/{asset}" for asset in ASSETS]
        tags = [_tag(source, digest) for source, digest in zip(sources, ASSETS.values(), strict=True)]
        page = (HERE / "playground.html").read_text(encoding="utf-8")
        self._page = string.Template(page).substitute(assets="\n    ".join(tags))
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
            Route("/playground/assets/{asset:path}", self._get_asset),
            Route("/playground/{name}", self._get_own),
        ]

    async def _get_page(self, request: Request) -> Response:
        return self.page()

    async def _get_start(self, request: Request) -> Response:
        """Return the example operations and, in the demo, the visitor's token."""
        token, variables = None, {}
        if self._visitor and _from_this_machine(request):
            token, variables = await self._visitor.token(), await self._visitor.variables()
        start = {"examples": examples(variables), "token": token}
        return Response(orjson.dumps(start), headers={"Cache-Control": "no-store"}, media_type="application/json")

    async def _get_asset(self, request: Request) -> Response:
        asset = request.path_params["asset"]
        if asset not in ASSETS or not self.local:
            return Response(status_code=404)
        return FileResponse(_installed(asset), headers={"Cache-Control": "max-age=31536000, immutable"})

    async def _get_own(self, request: Request) -> Response:
        name = request.path_params["name"]
        return FileResponse(HERE / name) if name in OWN_FILES else Response(status_code=404)


def examples(variables: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the example operations in the order of the tabs, with `variables` by the name of the example."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.graphql"))}
    names = [name for name in FIRST_EXAMPLES if name in found] + [name for name in found if name not in FIRST_EXAMPLES]
    return [{"query": found[name], "variables": variables.get(name, "")} for name in names]


def _installed(asset: str) -> Path:
    package, _, rest = asset.partition("/")
    return HERE / "node_modules" / package.partition("@")[0] / rest


def _tag(source: str, digest: str) -> str:
    integrity = f'integrity="{digest}" crossorigin="anonymous"'
    if source.endswith(".css"):
        return f'<link rel="stylesheet" href="{source}" {integrity}>'
    return f'<script src="{source}" {integrity} defer></script>'


def _from_this_machine(request: Request) -> bool:
    if "x-forwarded-for" in request.headers or "forwarded" in request.headers:
        return False  # a proxy on this machine forwards requests of other machines
    host = request.headers.get("host", "")
    name = host.rpartition(":")[0] or host
    own_page = request.headers.get("origin", f"http://{host}").partition("://")[2] == host
    return bool(request.client and request.client.host in LOOPBACK and name in LOCAL_HOSTS and own_page)
