"""Helpers that read whole timelines."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from graph import Graph
from graph.model import Page, Post
from graph.paging import Window


async def whole_timeline(graph: Graph, viewer: int, size: int, *, forward: bool) -> list[Post]:
    """Return a home timeline, newest first, read page by page in one direction. Each page is a separate request."""

    def page(window: Window) -> Awaitable[Page[Post]]:
        return graph.timelines.home(viewer, window, graph.visibility.of(viewer, graph.store.begin()))

    return await whole(page, size, forward=forward)


async def whole_list(graph: Graph, owner: int, list_id: int, size: int, *, forward: bool) -> list[Post]:
    """Return the timeline of a list as its owner sees it, newest first, read page by page in one direction."""

    def page(window: Window) -> Awaitable[Page[Post]]:
        return graph.list_timelines.page(graph.visibility.of(owner), owner, list_id, window)

    return await whole(page, size, forward=forward)


async def whole(page_of: Callable[[Window], Awaitable[Page[Post]]], size: int, *, forward: bool) -> list[Post]:
    """Return all posts, newest first, of pages that are read in one direction."""
    posts: list[Post] = []
    window = Window(size, forward)
    while True:
        page = await page_of(window)
        posts = [*posts, *page.items] if forward else [*page.items, *posts]
        if not (page.has_next if forward else page.has_previous):
            return posts
        assert len(page.items) == size, "a page is short though more follows"
        window = replace(window, high=posts[-1].id) if forward else replace(window, low=posts[0].id)
