"""The schema as it is served: what its documents may be and cost, and how operations are streamed."""

import copy
import logging
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from inspect import isawaitable
from typing import Any, cast

from graphql import DocumentNode, GraphQLError, GraphQLSyntaxError
from graphql.execution import ExecutionResult as CoreResult
from graphql.execution import Executor, create_source_event_stream, execute_subscription_event
from strawberry import Schema
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType
from strawberry.utils.operation import get_operation_type

from server.errors import coded
from server.limits import Documents
from server.operation import Caller, Operation, complaints

EVERYTHING = frozenset(OperationType)


class Execution:
    """Executes operations: by `schema` what is answered once, by `stream` what is streamed.

    Subscriptions are run without Strawberry's extensions. Many thousands may be idle, and what an extension keeps
    for each, and does for each event, would be more than the rest.
    """

    def __init__(self, schema: Schema, *, max_depth: int, max_cost: int, introspection: bool) -> None:
        logging.getLogger("strawberry.execution").setLevel(logging.CRITICAL)  # errors are logged once, with their ids
        self._documents = Documents(schema._schema, max_depth, introspection=introspection)
        self._max_cost = max_cost
        self.schema = copy.copy(schema)  # the one that others import stays as it is
        self.schema.extensions = (partial(Operation, self._documents, max_cost),)

    def stream(
        self,
        caller: Caller,
        query: str,
        variables: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        allowed: Collection[OperationType] = EVERYTHING,
    ) -> AsyncGenerator[ExecutionResult, None]:
        """Run an operation; its only result, or each event of a subscription, comes as it is ready, errors coded.

        What keeps it from being executed, or ends it before its time, is the last result: one without data.
        """
        try:
            prepared = self._documents.prepare(query)
        except GraphQLSyntaxError as error:
            return _refuse(caller, [error])
        if errors := complaints(prepared, operation_name, variables, self._max_cost):
            return _refuse(caller, errors)
        if _is_subscription(prepared.document, operation_name):
            return self._subscribe(caller, prepared.document, variables, operation_name)
        return self._answer(caller, query, variables, operation_name, allowed)

    async def _answer(
        self,
        caller: Caller,
        query: str,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
        allowed: Collection[OperationType],
    ) -> AsyncGenerator[ExecutionResult, None]:
        results = await self.schema.stream(
            query,
            variable_values=cast("dict[str, Any] | None", variables),
            context_value=caller,
            operation_name=operation_name,
            allowed_operation_types=allowed,
        )
        async with aclosing(cast("AsyncGenerator[ExecutionResult, None]", results)) as answers:
            async for answer in answers:
                yield _result(caller, answer.data, answer.errors)

    async def _subscribe(
        self,
        caller: Caller,
        document: DocumentNode,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> AsyncGenerator[ExecutionResult, None]:
        release = None
        try:
            await caller.check_session()
            release = caller.hold_stream()
            executor = self.schema.execution_context_class.build(
                self.schema._schema, document, None, caller.context(), cast("dict[str, Any]", variables), operation_name
            )
            del document, variables  # a filter may be large, and the stream may last for days
            if isinstance(executor, list):
                yield _result(caller, None, executor)
                return
            source = await _source_of(executor)
            if isinstance(source, list):
                yield _result(caller, None, source)
                return
            async with aclosing(source) as events:
                async for event in events:
                    once = executor.build_per_event_executor(event)
                    once._relevant_sub_fields = {}  # or it would be shared, and grow with every event
                    result = execute_subscription_event(once)
                    result = await result if isawaitable(result) else result
                    yield _result(caller, result.data, result.errors)
        except Exception as error:
            yield _result(caller, None, [_as_graphql(error)])
        finally:
            if release:
                release()


def was_executed(result: ExecutionResult) -> bool:
    """Tell whether this comes from executing something, if in vain; else it says why nothing is, or no longer."""
    return result.data is not None or any(error.path for error in result.errors or ())


async def _refuse(caller: Caller, errors: Sequence[GraphQLError]) -> AsyncGenerator[ExecutionResult, None]:
    yield _result(caller, None, errors)


async def _source_of(executor: Executor[Any]) -> AsyncGenerator[Any, None] | list[GraphQLError]:
    """Begin to listen to the events of a subscription; or give the errors of its arguments."""
    source = create_source_event_stream(executor)
    source = await source if isawaitable(source) else source
    return source.errors or [] if isinstance(source, CoreResult) else cast("AsyncGenerator[Any, None]", source)


def _is_subscription(document: DocumentNode, operation_name: str | None) -> bool:
    try:
        return get_operation_type(document, operation_name) is OperationType.SUBSCRIPTION
    except RuntimeError:
        return False  # there is no such operation; who executes it says so


def _result(caller: Caller, data: dict[str, Any] | None, errors: Sequence[GraphQLError] | None) -> ExecutionResult:
    return ExecutionResult(data, coded(errors, caller.request_id) if errors else None)


def _as_graphql(error: Exception) -> GraphQLError:
    return error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
