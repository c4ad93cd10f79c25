"""`fanline playground-assets`: GraphiQL on this machine, for playgrounds that work offline."""

from server.cli.console import console
from server.playground.assets import FOLDER, install


def install_assets() -> None:
    """Download the pinned files of GraphiQL. Raises AssetsUnavailable."""
    install()
    console.print(f"The playground's assets are in {FOLDER}. Restart the servers that are running.", soft_wrap=True)
