"""The playground: GraphiQL on a page of its own, under a policy that lets in nothing but the pinned files.

The files come from `node_modules` beside this module if they are installed, else from a CDN; browsers check them
against the hashes below either way. No third-party source is part of Fanline.
"""

import string
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
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
OWN = ("playground.js", "playground.css")
LOOPBACK = ("127.0.0.1", "::1")
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Playground:
    """The playground's page and files. `demo_token` gives the token of the demo person, if there is one.

    That token is handed out on this machine only, and only to pages of this server: not to a site that points its
    own name here.
    """

    def __init__(self, demo_token: Callable[[], Awaitable[str | None]] | None = None) -> None:
        self._demo_token = demo_token
        self._local = all(_installed(asset).is_file() for asset in ASSETS)
        sources = [f"playground/assets/{asset}" if self._local else f"{CDN}/{asset}" for asset in ASSETS]
        tags = [_tag(source, digest) for source, digest in zip(sources, ASSETS.values(), strict=True)]
        page = (HERE / "playground.html").read_text(encoding="utf-8")
        self._page = string.Template(page).substitute(assets="\n    ".join(tags))
        remote = "" if self._local else " ".join(sources)
        self._policy = (
            f"default-src 'none'; script-src 'self' {remote}; style-src 'self' {remote}; img-src 'self' data:; "
            "font-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )

    def page(self) -> Response:
        """Give the page."""
        headers = {"Content-Security-Policy": self._policy, "X-Content-Type-Options": "nosniff"}
        return Response(self._page, headers=headers, media_type="text/html")

    def routes(self) -> list[BaseRoute]:
        """Give the routes of the page and its files."""
        return [
            Route("/playground", self._get_page),
            Route("/playground/start.json", self._get_start),
            Route("/playground/assets/{asset:path}", self._get_asset),
            Route("/playground/{name}", self._get_own),
        ]

    async def _get_page(self, request: Request) -> Response:
        return self.page()

    async def _get_start(self, request: Request) -> Response:
        """Tell the page what it starts with: the examples, and in the demo somebody's token."""
        token = await self._demo_token() if self._demo_token and _from_this_machine(request) else None
        start = {"examples": examples(), "token": token}
        return Response(orjson.dumps(start), headers={"Cache-Control": "no-store"}, media_type="application/json")

    async def _get_asset(self, request: Request) -> Response:
        asset = request.path_params["asset"]
        if asset not in ASSETS or not self._local:
            return Response(status_code=404)
        return FileResponse(_installed(asset), headers={"Cache-Control": "max-age=31536000, immutable"})

    async def _get_own(self, request: Request) -> Response:
        name = request.path_params["name"]
        return FileResponse(HERE / name) if name in OWN else Response(status_code=404)


def examples() -> list[dict[str, str]]:
    """Read the example operations, with their variables where they have some."""
    found = []
    for path in sorted(EXAMPLES.glob("*.graphql")):
        variables = path.with_suffix(".json")
        found.append(
            {
                "name": path.stem,
                "query": path.read_text(encoding="utf-8"),
                "variables": variables.read_text(encoding="utf-8") if variables.is_file() else "",
            }
        )
    return found


def _installed(asset: str) -> Path:
    """Say where npm puts an asset."""
    package, _, rest = asset.partition("/")
    return HERE / "node_modules" / package.partition("@")[0] / rest


def _tag(source: str, digest: str) -> str:
    checked = f'integrity="{digest}" crossorigin="anonymous"'
    if source.endswith(".css"):
        return f'<link rel="stylesheet" href="{source}" {checked}>'
    return f'<script src="{source}" {checked} defer></script>'


def _from_this_machine(request: Request) -> bool:
    name = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
    return bool(request.client and request.client.host in LOOPBACK and name in LOCAL_NAMES)
