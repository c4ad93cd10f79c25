"""`fanline explain`: run a query on the store, and print its costs as a tree."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from graphql import GraphQLError
from rich.console import Console
from rich.tree import Tree
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.types.graphql import OperationType

from graph import Graph
from resolvers.context import Viewer
from server.app import make_execution
from server.auth import Tokens
from server.cli.stores import existing_store_of, run, user_with_login
from server.operations.caller import Caller
from server.operations.observation import Observation
from server.operations.quotas import Quotas
from server.settings import Settings, SettingsError

QUERIES = frozenset({OperationType.QUERY})
LIFETIME = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Question:
    """The operation to explain. If `warm`, it runs twice and the second run is explained. Errors name `file`."""

    file: Path
    document: str
    variables: dict[str, Any]
    operation: str | None
    login: str | None
    warm: bool


class Operator(Caller):
    """The operator, who runs the query as a user but without a session."""

    def start_session_check(self) -> None:
        """Do nothing: there is no session to check."""


def print_explanation(file: Path, variables: str, operation: str | None, login: str | None, *, warm: bool) -> None:
    """Run a query, and print its costs. Raises SettingsError if it cannot run."""
    settings = Settings.load()
    question = Question(file, _document(file), _variables(variables), operation, login, warm)
    with existing_store_of(settings):
        explanation = run(settings, lambda graph: explain(graph, settings, question))
    Console(highlight=False, markup=False).print(tree_of(explanation, login), soft_wrap=True)


async def explain(graph: Graph, settings: Settings, question: Question) -> dict[str, Any]:
    """Return the explanation of a query. Raises SettingsError if nothing was executed."""
    caller = Operator(graph, Tokens(settings.keys()), Quotas.of(settings), "explain", "")
    if question.login is not None:
        user = await user_with_login(graph, settings, question.login)
        caller.viewer = Viewer(user, secrets.token_hex(8), datetime.now(UTC) + LIFETIME)
    execution = make_execution(settings, Observation(explains=True))
    explanation: dict[str, Any] = {}
    for _ in range(1 + question.warm):
        await graph.timelines.wait_for_rebuilds()
        try:
            result = await execution.execute(
                caller, question.document, question.variables, question.operation, QUERIES, explain=True
            )
        except InvalidOperationTypeError as error:
            raise SettingsError(_not_explained(error.operation_type)) from None
        found = result.extensions and result.extensions["explain"]
        if not found or found["executor"]["mode"] == "none":
            raise SettingsError("\n".join(_with_place(question.file, error) for error in result.errors or ()))
        explanation = {**found, "errors": [error.message for error in result.errors or ()]}
    return explanation


def _not_explained(kind: OperationType) -> str:
    if kind is OperationType.SUBSCRIPTION:
        return "Only queries are explained here. For a subscription, ask the server: each event has an explanation."
    return "Only queries are explained here: a mutation would change the data."


def _with_place(file: Path, error: GraphQLError) -> str:
    """Return the message of an error with the file's name and, if known, the line and column."""
    message = error.message.replace("in 'operationName'", "with --operation")
    place = error.locations[0] if error.locations else None
    return f"{file}, line {place.line}, column {place.column}: {message}" if place else f"{file}: {message}"


def _document(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}.") from None


def _variables(text: str) -> dict[str, Any]:
    try:
        variables = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SettingsError(f"--variables is not valid JSON: {error}.") from None
    if not isinstance(variables, dict):
        raise SettingsError("--variables must be a JSON object.")
    return variables


def tree_of(explanation: Mapping[str, Any], login: str | None) -> Tree:
    """Return an explanation as a tree. The query ran as the user with this login, or anonymously if it is None."""
    name, kind = explanation["operation"] or "(anonymous)", explanation["kind"]
    cost = explanation["cost"]
    reader = "anonymous" if login is None else f"as {login}"
    tree = Tree(f"{kind} {name}, {reader}: {explanation['milliseconds']:,.1f} ms")
    tree.add(f"maximum cost: {cost['points']:,} points, {cost['bytes']:,} bytes")
    executor, store, archive = explanation["executor"], explanation["store"], explanation["archive"]
    ran = {"plan": "a plan", "graphql-core": f"graphql-core. {executor['reason']}"}
    layers = tree.add(f"executor: {ran[executor['mode']]}")
    for number, layer in enumerate(executor["layers"], 1):
        layers.add(f"layer {number}: {layer['milliseconds']:,.1f} ms, {', '.join(layer['fields'])}")
    trips = tree.add(f"store: {counted(store['roundTrips'], 'round trip')}, {counted(store['commands'], 'command')}")
    for exchange in store["exchanges"]:
        trips.add(f"{counted(exchange['commands'], 'command')}: {_duration(exchange['milliseconds'])}")
    tree.add(f"archive: {counted(archive['queries'], 'query', 'queries')}, {archive['milliseconds']:,.1f} ms")
    loaders = tree.add("loaders")
    for line in _loaders(explanation["loaders"]):
        loaders.add(line)
    timelines = explanation["timelines"]
    pages = tree.add(
        f"timelines: {counted(timelines['pages'], 'page')}, {timelines['scanned']:,} posts scanned, "
        f"{timelines['dropped']:,} dropped"
    )
    for page in timelines["read"]:
        pages.add(
            f"{page['kind'].lower()} from {', '.join(page['sources'])}; "
            f"{counted(page['mergedAuthors'], 'author')} merged, {page['scanned']:,} scanned, "
            f"{page['dropped']:,} dropped"
        )
    for message in explanation["errors"]:
        tree.add(f"error: {message}")
    return tree


def _loaders(loaders: list[dict[str, Any]]) -> Iterator[str]:
    for loader in loaders:
        batches = ", ".join(f"{keys:,}" for keys in loader["batches"]) or "none"
        yield f"{loader['name']}: keys of each batch: {batches}; {counted(loader['hits'], 'cache hit')}"


def _duration(milliseconds: float | None) -> str:
    return "not answered" if milliseconds is None else f"{milliseconds:,.1f} ms"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number and its noun, in the singular or plural."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
