"""`fanline playground-assets`: install GraphiQL on this machine, so that the playground works offline."""

from server.cli.messages import say
from server.playground.assets import FOLDER, install


def install_assets() -> None:
    """Download the pinned files of GraphiQL. Raises AssetsUnavailable."""
    install()
    say(f"The playground's assets are in {FOLDER}. Restart the servers that are running.")
