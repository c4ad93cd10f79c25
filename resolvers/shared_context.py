"""The context of an execution whose result goes to several clients. It has no viewer, and raises if one is requested.

Only fields that are declared `independent` of the client are executed with it. A field that is declared `independent`
by mistake fails, instead of showing one client data that only another may see.
"""

from typing import NoReturn

from graph import Graph
from graph.errors import ViewerNeeded
from graph.model import Credentials
from resolvers.context import Context, Viewer
from resolvers.loaders import Loaders


class SharedLoaders(Loaders):
    """Dataloaders without a viewer."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, None, graph.visibility.of_several())

    @property
    def _viewer(self) -> int | None:
        raise ViewerNeeded

    @_viewer.setter
    def _viewer(self, viewer: int | None) -> None:
        """Ignore the viewer that the base class sets."""


class SharedContext(Context):
    """The context of one execution for several clients. Raises ViewerNeeded for everything that belongs to a client."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, None, _issue_no_token)

    @property
    def viewer(self) -> Viewer | None:
        """Raise ViewerNeeded."""
        raise ViewerNeeded

    @viewer.setter
    def viewer(self, viewer: Viewer | None) -> None:
        """Ignore the viewer that the base class sets."""

    def _new_loaders(self) -> Loaders:
        return SharedLoaders(self.graph)


def _issue_no_token(session: Credentials) -> NoReturn:
    raise ViewerNeeded
