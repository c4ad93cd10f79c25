"""A built web application, which the demo serves at `/`: its files, and its page for every other path."""

from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

PAGE = "index.html"
HASHED = "assets/"  # Vite names the files in this folder by their content
FOREVER = "public, max-age=31536000, immutable"
CHECK_AGAIN = "no-cache"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
"""The media types of the files that are served. The operating system's own list differs from machine to machine."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{media}; media-src 'self'{media}; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = {"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin"}


class WebApp:
    """Serves the files of a folder, and `index.html` if a browser navigates to any other path.

    Returns 404 for a missing file if its path looks like a file name or the request does not accept HTML. The pages may
    show pictures and videos from `media_hosts`.
    """

    def __init__(self, folder: Path, media_hosts: Sequence[str] = ()) -> None:
        self._folder = folder.resolve()
        media = "".join(f" https://{host}" for host in media_hosts)
        self._headers = {"Content-Security-Policy": POLICY.format(media=media), **SECURITY_HEADERS}

    def routes(self) -> list[BaseRoute]:
        """Return the routes. They match every path, so add them after all other routes."""
        return [Route("/{path:path}", self._get)]

    async def _get(self, request: Request) -> Response:
        path = request.path_params["path"]
        file = await to_thread.run_sync(self._find, path)
        if file is None and "." not in path.rpartition("/")[2] and "text/html" in request.headers.get("accept", ""):
            path, file = PAGE, await to_thread.run_sync(self._find, PAGE)
        if file is None:
            raise HTTPException(404)
        headers = {"Cache-Control": FOREVER if path.startswith(HASHED) else CHECK_AGAIN, **self._headers}
        return FileResponse(file, headers=headers, media_type=MEDIA_TYPES[file.suffix])

    def _find(self, path: str) -> Path | None:
        """Return the file for a URL path, with symbolic links resolved.

        Return None if it is missing, outside the folder or of an unknown type.
        """
        try:
            file = (self._folder / (path or PAGE)).resolve(strict=True)
        except (OSError, ValueError):  # such as a path with a zero byte
            return None
        is_inside = file.is_relative_to(self._folder)
        return file if is_inside and file.is_file() and file.suffix in MEDIA_TYPES else None
