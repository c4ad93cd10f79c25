"""A script for the installed distribution: compares it with graphql-core on the schema of a library.

The script runs in an environment that has the distribution `strawberry-breadth-first` and nothing of this repository.
"""

import asyncio
from typing import Any

import breadth_first  # type: ignore[import-not-found]  # only in the environment of test_distribution.py
import strawberry
from breadth_first import Batches, BreadthFirst, Executor, batched, single
from breadth_first.loader import DataLoader  # type: ignore[import-not-found]  # as above
from graphql import execute, parse

AUTHORS = {1: "Jane Austen", 2: "George Eliot"}
BOOKS = {1: ("Emma", 1), 2: ("Persuasion", 1), 3: ("Middlemarch", 2), 4: ("Anonymous", 9)}
DOCUMENTS = [
    "{ books(first: 3) { __typename id title author { id name books { title } } } }",
    "query ($first: Int!) { books(first: $first) { title author { name } requiredAuthor { name } } }",
    "{ book(id: 4) { title requiredAuthor { name } } }",
    "{ book(id: 1) { label loud: label(upper: true) } }",
    "{ items { __typename ... on Book { title } ... on Author { name } } }",
    "{ book(id: 99) { title } __schema { queryType { name } } }",
    'mutation { first: rename(id: 1, title: "Emma 2") { title } second: rename(id: 99, title: "x") { title } }',
]


class Context:
    """The context of one request."""

    def __init__(self) -> None:
        self.batches = Batches()
        self.authors = DataLoader(self._load_authors)
        self.titles: dict[int, str] = {}

    async def _load_authors(self, ids: list[int]) -> list["Author | None"]:
        return [Author(id=id_, name=AUTHORS[id_]) if id_ in AUTHORS else None for id_ in ids]


class Reference:
    """A stand-in for an author."""

    def __init__(self, id_: int) -> None:
        self.id = id_


async def authors(books: list["Book"], context: Context) -> list["Author | None"]:
    found: list[Author | None] = await context.authors.load_many([book.author_id for book in books])
    return found


def author_references(books: list["Book"], context: Context) -> list[Reference]:
    return [Reference(book.author_id) for book in books]


async def books_of(authors: list[Any], context: Context) -> list[list["Book"]]:
    return [[book(id_) for id_, (_, by) in BOOKS.items() if by == author.id] for author in authors]


def labels(books: list["Book"], context: Context, *, upper: bool = False) -> list[Any]:
    texts = [f"{book.id}: {book.title}" for book in books]
    return [text.upper() if upper else ValueError(f"no label for {text}") for text in texts]


@strawberry.type
class Author:
    id: int
    name: str
    books: list["Book"] = batched(books_of, description="Books.", needs_only_reference=True)


@strawberry.type
class Book:
    id: int
    title: str
    author_id: strawberry.Private[int]
    author: Author | None = batched(authors, description="The author.", references=author_references)
    required_author: Author = batched(authors, description="The author, or an error.")
    label: str | None = batched(labels, description="A label.")


def book(id_: int) -> Book:
    return Book(id=id_, title=BOOKS[id_][0], author_id=BOOKS[id_][1])


def all_books(context: Context, *, first: int = 10) -> list[Book]:
    return [book(id_) for id_ in list(BOOKS)[:first]]


def book_by_id(context: Context, *, id: int) -> Book | None:
    return book(id) if id in BOOKS else None


def rename(context: Context, *, id: int, title: str) -> Book:
    found = book(id)
    found.title = title
    return found


@strawberry.type
class Query:
    books: list[Book | None] = single(all_books, description="Books.")
    book: Book | None = single(book_by_id, description="A book.")

    @strawberry.field
    def items(self) -> list[Book | Author]:
        return [book(1), Author(id=2, name="George Eliot")]


@strawberry.type
class Mutation:
    rename: Book | None = single(rename, description="Rename a book.")


async def main() -> None:
    schema = strawberry.Schema(Query, Mutation, extensions=[BreadthFirst])
    executor = Executor(schema._schema)
    for document in DOCUMENTS:
        options: dict[str, Any] = {"variable_values": {"first": 4} if "$first" in document else {}}
        expected: Any = execute(schema._schema, parse(document), context_value=Context(), **options)
        expected = await expected if asyncio.iscoroutine(expected) else expected
        found = await executor.execute(parse(document), context_value=Context(), **options)
        assert found.formatted == expected.formatted, (document, found.formatted, expected.formatted)
        extended = await schema.execute(document, context_value=Context(), **options)
        assert (extended.data, extended.errors or None) == (found.data, found.errors or None), document
    print(executor.planned, executor.fallen_back, breadth_first.__file__)


if __name__ == "__main__":
    asyncio.run(main())
