"""A hook for mkdocs: adds top-level files as pages, points links at the repository, and forbids external resources."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"
TOP = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""The files of the repository's top level that become pages, with the names of the pages."""
BOOSTS = {"adr/": 0.2, "benchmarks/": 0.5, "changelog": 0.2, "errors": 3, "configuration": 2, "api": 2}
"""The weight of a page in the search, by the beginning of its path."""
EXTERNAL = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\ssrc="?https?:|<link\b(?![^>]*canonical)[^>]*href="?https?:"""
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the repository's top level."""
    for source, page in TOP.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files outside the site at the repository, and set the page's weight in the search."""
    shown = page.file.src_uri
    page.meta["search"] = {"boost": next((boost for start, boost in BOOSTS.items() if shown.startswith(start)), 1)}
    source = next((top for top, name in TOP.items() if name == shown), f"{DOCS}/{shown}")
    blocks = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    blocks[::2] = [
        re.sub(r"\]\(([^)\s]+)\)", lambda found: f"]({moved(found[1], source, shown, config)})", block)
        for block in blocks[::2]
    ]
    return "".join(blocks)


def moved(link: str, source: str, shown: str, config: MkDocsConfig) -> str:
    """Return a link in the file `source`, rewritten for the page `shown` that is made from the file."""
    path, hash_, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if target in TOP or target.startswith(f"{DOCS}/"):
        page = TOP.get(target, target.removeprefix(f"{DOCS}/"))
        if (ROOT / DOCS / page).is_dir():
            page += "/README.md"
        return posixpath.relpath(page, posixpath.dirname(shown) or ".") + hash_ + anchor
    kind = "tree" if (ROOT / target).is_dir() else "blob"
    return f"{config.extra['repository']}/{kind}/main/{target}{hash_}{anchor}"


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Prepare tables for phones, where each row of some tables becomes a block whose cells repeat the column titles."""
    return re.sub(r"<table>.*?</table>", lambda table: labelled(table[0]), html, flags=re.S)


def labelled(table: str) -> str:
    """Return a table whose cells have the attribute `data-label`, the title of the column.

    The table gets `data-blocks` if its first column is code, or if it has three or four columns; wider tables are
    mostly numbers.
    """
    titles = [re.sub("<.*?>", "", title) for title in re.findall(r"<th\b[^>]*>(.*?)</th>", table, re.S)]

    def row(cells: re.Match[str]) -> str:
        columns = iter(titles)
        return re.sub(r"<td\b", lambda _: f'<td data-label="{next(columns, "")}"', cells[0])

    is_reference = bool(re.search(r"<tr>\s*<td[^>]*>(?:<a [^>]*></a>)?<code>", table))
    start = "<table data-blocks>" if is_reference or len(titles) in (3, 4) else "<table>"
    return start + re.sub(r"<tr>.*?</tr>", row, table.removeprefix("<table>"), flags=re.S)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads something from another host: the site must work offline."""
    if found := EXTERNAL.search(output):
        raise PluginError(f"{page.file.src_uri} loads an external resource: {found[0]}")
    return output
