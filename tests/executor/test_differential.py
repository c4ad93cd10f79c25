"""Generated documents over generated schemas: the executor returns the data and errors of graphql-core."""

import asyncio
from collections import Counter
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import pytest
from graphql import DocumentNode, ExecutionResult, GraphQLError, GraphQLSchema, execute, parse, validate
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from executor import Executor
from tests.executor.differential.comparison import Case, Leftovers, differences
from tests.executor.differential.documents import DocumentWriter
from tests.executor.differential.features import EXPECTED, features_of
from tests.executor.differential.schemas import GeneratedSchema, SchemaWriter
from tests.executor.differential.tapes import Tape, tapes

pytestmark = pytest.mark.slow

CASES, LONG_CASES = 1_200, 100_800
DOCUMENTS, SALTS = 4, 3

schemas = tapes(220).map(lambda tape: SchemaWriter(tape).write())
documents = st.lists(tapes(260), min_size=DOCUMENTS, max_size=DOCUMENTS)
salts = st.integers(0, 999)


class Comparison:
    """Compares cases on one event loop and counts their features."""

    def __init__(self, runner: asyncio.Runner, executor: Callable[[GraphQLSchema], Executor] = Executor) -> None:
        self._runner = runner
        self._executor = executor
        self.features: Counter[str] = Counter()
        self.cases = 0
        self.wrongly_fallen_back = 0

    def compare(self, generated: GeneratedSchema, tapes: list[Tape], salt: int) -> None:
        """Execute documents over a schema with several data sets. Raises AssertionError on a difference."""
        executor = self._executor(generated.schema)
        for tape in tapes:
            document = DocumentWriter(generated.schema, tape).write()
            parsed = parse(document.text)
            if not validate(generated.schema, parsed):
                cases = [Case(generated, document, parsed, salt + step) for step in range(SALTS)]
                self._runner.run(self._compare(executor, cases))

    def search(self, cases: int, *phases: Phase) -> None:
        """Generate and compare cases. A failing case is shrunk and shown as a schema, a document and data."""

        @settings(
            phases=phases or (Phase.generate, Phase.shrink),
            max_examples=cases // (DOCUMENTS * SALTS),
            deadline=None,
            database=None,
            verbosity=Verbosity.quiet,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        @given(schemas, documents, salts)
        def compare(generated: GeneratedSchema, tapes: list[Tape], salt: int) -> None:
            self.compare(generated, tapes, salt)

        compare()

    async def _compare(self, executor: Executor, cases: list[Case]) -> None:
        left = Leftovers()
        for case in cases:
            fallen_back = executor.fallen_back
            expected = case.run_by_graphql_core()
            try:
                found = differences(expected, await case.run_by(executor)) + left.behind()
            except Exception as error:
                raise AssertionError(f"the executor raised {error!r}\n\n{case}") from error
            assert not found, "\n".join([*found, "", str(case)])
            self.wrongly_fallen_back += not case.may_fall_back and executor.fallen_back > fallen_back
            self.features.update(features_of(case, expected))
            self.cases += 1


def test_generated_documents_over_generated_schemas(long_profile: bool) -> None:
    """Data, the order of keys, and errors with messages, paths, locations and order equal graphql-core's."""
    cases = LONG_CASES if long_profile else CASES
    with asyncio.Runner() as runner:
        comparison = Comparison(runner)
        comparison.search(cases)
    print(comparison.cases, dict(comparison.features.most_common()))
    assert comparison.cases >= cases * 0.9, "too few of the generated documents are valid"
    assert EXPECTED - comparison.features.keys() == set()
    assert comparison.wrongly_fallen_back == 0


Damage = Callable[[ExecutionResult], ExecutionResult]


def with_errors(change: Callable[[GraphQLError], GraphQLError]) -> Damage:
    """Return a function that changes all errors of a result."""
    return lambda result: ExecutionResult(result.data, [change(error) for error in result.errors or ()] or None)


def with_attributes(error: GraphQLError, **changed: Any) -> GraphQLError:
    """Return a copy of an error with some attributes changed."""
    attributes = {"nodes": error.nodes, "path": error.path, "original_error": error.original_error, **changed}
    return GraphQLError(error.message, **attributes)


def with_reversed_keys(data: Any) -> Any:
    """Return data with the keys of all objects reversed."""
    if isinstance(data, dict):
        return {key: with_reversed_keys(data[key]) for key in reversed(data)}
    return [with_reversed_keys(item) for item in data] if isinstance(data, list) else data


def with_numbers_for_booleans(data: Any) -> Any:
    """Return data with Booleans replaced by numbers."""
    if isinstance(data, dict):
        return {key: with_numbers_for_booleans(value) for key, value in data.items()}
    if isinstance(data, list):
        return [with_numbers_for_booleans(item) for item in data]
    return int(data) if isinstance(data, bool) else data


DAMAGES: dict[str, Damage] = {
    "the order of keys": lambda result: ExecutionResult(with_reversed_keys(result.data), result.errors),
    "the type of a value": lambda result: ExecutionResult(with_numbers_for_booleans(result.data), result.errors),
    "no data": lambda result: ExecutionResult(None, result.errors),
    "the order of errors": lambda result: ExecutionResult(result.data, (result.errors or [])[::-1] or None),
    "one error less": lambda result: ExecutionResult(result.data, (result.errors or [])[1:] or None),
    "an empty list of errors": lambda result: ExecutionResult(result.data, result.errors or []),
    "paths": with_errors(lambda error: with_attributes(error, path=[*(error.path or ()), 0])),
    "locations": with_errors(lambda error: with_attributes(error, nodes=(error.nodes or ())[:-1])),
    "original errors": with_errors(lambda error: with_attributes(error, original_error=ValueError(error.message))),
    "extensions": with_errors(lambda error: with_attributes(error, extensions={"code": "MINE"})),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_comparison_detects_damaged_results(name: str) -> None:
    """The comparison detects an executor that damages its results in one way."""

    class Wrong(Executor):
        async def execute(self, *args: Any, **options: Any) -> ExecutionResult:
            return DAMAGES[name](await super().execute(*args, **options))

    with asyncio.Runner() as runner, pytest.raises(AssertionError, match="--- document"):
        Comparison(runner, Wrong).search(CASES, Phase.generate)


def test_the_comparison_detects_unused_batch_resolvers() -> None:
    """The comparison detects an executor that passes everything to graphql-core."""

    class Lazy(Executor):
        def __init__(self, schema: GraphQLSchema) -> None:
            super().__init__(schema)
            self.own_schema = schema

        async def execute(self, document: DocumentNode, **options: Any) -> ExecutionResult:
            result = execute(self.own_schema, document, **options)
            return await result if isawaitable(result) else result

    with asyncio.Runner() as runner, pytest.raises(AssertionError, match="has a batch resolver"):
        Comparison(runner, Lazy).search(CASES, Phase.generate)
