"""Reading of home timelines."""

from dataclasses import replace

from graph import Graph
from graph.model import Post
from graph.paging import Window


async def whole_timeline(graph: Graph, viewer: int, size: int, *, forward: bool) -> list[Post]:
    """Return a home timeline, newest first, read page by page in one direction."""
    posts: list[Post] = []
    window = Window(size, forward)
    while True:
        page = await graph.timelines.home(viewer, window)
        posts = [*posts, *page.items] if forward else [*page.items, *posts]
        if not (page.has_next if forward else page.has_previous):
            return posts
        assert len(page.items) == size, "a page is short though more follows"
        window = replace(window, high=posts[-1].id) if forward else replace(window, low=posts[0].id)
