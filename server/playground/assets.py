"""GraphiQL and React, pinned by version and hash. Fanline contains no third-party source code.

`fanline playground-assets` installs them for this user; in a checkout, `npm install` in this folder does too. Without
either, the page loads them from a CDN.
"""

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import platformdirs

HERE = Path(__file__).parent
FOLDER = Path(platformdirs.user_data_dir("fanline")) / "playground"
CDN = "https://cdn.jsdelivr.net/npm"
ASSETS = {
    "react@18.3.1/umd/react.production.min.js": (
        "sha384-DGyLxAyjq0f9SPpVevD6IgztCFlnMF6oW/XQGmfe+IsZ8TqEiDrcHkMLKI6fiB/Z"
    ),
    "react-dom@18.3.1/umd/react-dom.production.min.js": (
        "sha384-gTGxhz21lVGYNMcdJOyq01Edg0jhn/c22nsx0kyqP0TxaV5WVdsSH1fSDUf5YJj1"
    ),
    "graphiql@4.1.2/graphiql.min.js": "sha384-9XdHu7ajgGJziD4J1zNBKQ842Q/+zZfDv+ib1eMhZWBH6hPAs806x+Jbcf0yNO6B",
    "graphiql@4.1.2/graphiql.min.css": "sha384-1el1QShFBnnXTx9x/Cprg82hZWKt0ry29OAYIXt05swbi0KcZDFoj0CWguMpopJr",
}
PACKAGES = tuple(dict.fromkeys(asset.partition("/")[0] for asset in ASSETS))
TIMEOUT_SECONDS = 120


class AssetsUnavailable(Exception):
    """The assets cannot be downloaded. The message gives the reason and what to do."""


def installed(asset: str) -> Path | None:
    """Return the file of an asset on this machine, or None if it is not installed."""
    package, _, rest = asset.partition("/")
    places = (FOLDER / asset, HERE / "node_modules" / package.partition("@")[0] / rest)
    return next((place for place in places if place.is_file()), None)


def all_installed() -> bool:
    """Return True if all assets are on this machine."""
    return all(installed(asset) for asset in ASSETS)


def install() -> None:
    """Download the assets with npm, or else from the CDN, and check their hashes. Raises AssetsUnavailable."""
    npm = shutil.which("npm")
    contents = _from_npm(npm) if npm else {asset: _from_cdn(asset) for asset in ASSETS}
    for asset, digest in ASSETS.items():
        if "sha384-" + base64.b64encode(hashlib.sha384(contents[asset]).digest()).decode() != digest:
            raise AssetsUnavailable(f"The downloaded file {asset} is not the pinned one. Nothing was installed.")
    for asset, content in contents.items():
        path = FOLDER / asset
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _from_npm(npm: str) -> dict[str, bytes]:
    """Return the assets, downloaded from the registry that npm is configured to use."""
    with tempfile.TemporaryDirectory(prefix="fanline-") as folder:
        command = [npm, "pack", "--silent", "--pack-destination", folder, *PACKAGES]
        try:
            subprocess.run(  # noqa: S603 - npm, with pinned packages
                command, cwd=folder, check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
            )
        except subprocess.CalledProcessError as error:
            last = (error.stderr or error.stdout).strip().splitlines()[-1:] or ["it gave no reason"]
            raise AssetsUnavailable(f"npm cannot download the playground's assets: {last[0]}") from error
        except subprocess.TimeoutExpired as error:
            raise AssetsUnavailable(f"npm did not finish within {TIMEOUT_SECONDS} seconds. Try again.") from error
        return {asset: _packed(Path(folder), asset) for asset in ASSETS}


def _packed(folder: Path, asset: str) -> bytes:
    package, _, rest = asset.partition("/")
    with tarfile.open(folder / f"{package.replace('@', '-')}.tgz") as archive:
        member = archive.extractfile(f"package/{rest}")
        return member.read() if member else b""


def _from_cdn(asset: str) -> bytes:
    try:
        with urlopen(f"{CDN}/{asset}", timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - a constant
            content: bytes = response.read()
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise AssetsUnavailable(
            f"The playground's assets cannot be downloaded from {CDN}: {reason}. If npm is installed, they are "
            f"downloaded from the registry that npm is configured to use."
        ) from error
    return content
