"""The executor of a schema: plans operations, runs the plans, and passes unsupported operations to graphql-core."""

from collections.abc import Coroutine, Hashable, Mapping
from inspect import isawaitable
from typing import Any

import graphql as core
from graphql.execution.values import VariableValues, get_variable_values

from .arguments import NO_VARIABLES
from .cache_keys import freeze
from .declarations import Declarations
from .independence import Independence
from .observer import Observer
from .open_runs import OpenRun
from .plan import Fallback, Plan, Row
from .plan_cache import PlanCache, PlannedDocument
from .planner import Planner, Unsupported, restrict
from .propagation import Propagation
from .run import PlanRun

NO_SUCH_OPERATION = Fallback("The document has no such operation.")
UNSUPPORTED_DOCUMENT = Fallback("The document uses introspection, @defer, @stream, or variables of fragments.")
NULL_CONDITION = Fallback("A condition of @skip or @include is null.")


class Operation:
    """One operation with its variables, ready to run: once, or once for each event of a subscription.

    `is_independent` is True for a subscription whose results are the same in every context. `can_leave_open` is True
    for a subscription that `run_open` can execute.
    """

    __slots__ = ("_executor", "_plan", "_variables", "can_leave_open", "is_independent")

    def __init__(
        self,
        executor: "Executor",
        plan: Plan,
        variables: VariableValues,
        *,
        is_independent: bool = False,
        can_leave_open: bool = False,
    ) -> None:
        self._executor = executor
        self._plan = plan
        self._variables = variables
        self.is_independent = is_independent
        self.can_leave_open = can_leave_open

    @property
    def key(self) -> Hashable:
        """The plan and the variables. Equal keys give equal results for the same root value and context."""
        return self._plan, freeze(self._variables.coerced)

    def run(
        self, root_value: Any = None, context_value: Any = None, observer: Observer | None = None
    ) -> Coroutine[Any, Any, core.ExecutionResult]:
        """Return a coroutine that runs the operation: see `Executor.execute`."""
        return self._executor._run(self._plan, context_value, root_value, self._variables, observer)

    def run_open(self, root_value: Any, context_value: Any) -> Coroutine[Any, Any, OpenRun | None]:
        """Return a coroutine that runs the part of the operation that several contexts share: `executor.open_runs`.

        `context_value` is the context for this shared part. The coroutine returns None if the run has errors.
        """
        return self._executor._run_open(self._plan, context_value, root_value, self._variables)


class Executor:
    """Executes validated documents of one schema, breadth first.

    Only the first `max_errors` errors are reported, because each costs time and memory. Plans are cached by the
    identity of the document object, so callers should cache parsed documents.

    `planned` counts operations that were run with a plan, `slow` the planned operations that needed null propagation,
    and `fallen_back` the operations that were passed to graphql-core.
    """

    def __init__(
        self, schema: core.GraphQLSchema, *, hide_suggestions: bool = False, max_errors: int | None = None
    ) -> None:
        core.assert_valid_schema(schema)
        self._schema = schema
        self._declarations = Declarations(schema)
        self._hide_suggestions = hide_suggestions
        self._max_errors = max_errors
        self._plan_cache = PlanCache(self._declarations)
        self.planned = 0
        self.slow = 0
        self.fallen_back = 0

    async def execute(
        self,
        document: core.DocumentNode,
        *,
        root_value: Any = None,
        context_value: Any = None,
        variable_values: Mapping[str, Any] | None = None,
        operation_name: str | None = None,
        observer: Observer | None = None,
    ) -> core.ExecutionResult:
        """Execute one operation of a document and return the result that graphql-core would return.

        For a subscription, the root value is the event. Do not modify the returned data: an object that occurs several
        times in the response is one shared dictionary. Cancelling the call cancels everything that it started.
        `observer` is notified of how the operation is executed.
        """
        operation = self.prepare(document, variable_values, operation_name)
        if isinstance(operation, Operation):
            return await operation.run(root_value, context_value, observer)
        if not isinstance(operation, Fallback):
            return core.ExecutionResult(None, operation)
        self.fallen_back += 1
        if observer is not None:
            observer.fell_back(operation.reason)
        result = core.execute(
            self._schema,
            document,
            root_value,
            context_value,
            dict(variable_values or {}),
            operation_name,
            hide_suggestions=self._hide_suggestions,
        )
        return await result if isawaitable(result) else result

    def prepare(
        self,
        document: core.DocumentNode,
        variable_values: Mapping[str, Any] | VariableValues | None,
        operation_name: str | None = None,
    ) -> Operation | list[core.GraphQLError] | Fallback:
        """Plan an operation and coerce its variables, unless `variable_values` are already coerced.

        Return a list of errors if the variables are invalid, or a Fallback if graphql-core must execute the operation.
        """
        planned = self._plan_cache.document(document)
        chosen = planned.info.operation(operation_name)
        if chosen is None:
            return NO_SUCH_OPERATION
        if not planned.info.supported:
            return UNSUPPORTED_DOCUMENT
        variables: VariableValues = NO_VARIABLES
        if isinstance(variable_values, VariableValues):
            variables = variable_values
        elif chosen.variable_definitions:
            coerced = get_variable_values(
                self._schema,
                chosen.variable_definitions,
                dict(variable_values or {}),
                self._max_errors,
                hide_suggestions=self._hide_suggestions,
            )
            if isinstance(coerced, list):
                return coerced
            variables = coerced
        plan = self._plan(planned, chosen, operation_name, variables)
        if isinstance(plan, Fallback):
            return plan
        if chosen.operation is core.OperationType.SUBSCRIPTION and not plan.root.needs_paths:
            # Root-field arguments can be large and are not needed for events; a subscription can last for days.
            variables = restrict(variables, planned.info.variables_below_roots(chosen))
            is_independent, can_leave_open = self._independence(planned, chosen, operation_name)
            return Operation(self, plan, variables, is_independent=is_independent, can_leave_open=can_leave_open)
        return Operation(self, plan, variables)

    def forget(self, document: core.DocumentNode) -> None:
        """Drop the plans of a document that will not be executed again."""
        self._plan_cache.drop(document)

    def _independence(
        self, planned: PlannedDocument, operation: core.OperationDefinitionNode, operation_name: str | None
    ) -> tuple[bool, bool]:
        known = planned.independent.get(operation_name)
        if known is None:
            decided = [
                Independence(self._schema, self._declarations, planned.info, leaves_open=leaves_open).of(operation)
                for leaves_open in (False, True)
            ]
            known = planned.independent[operation_name] = decided[0], decided[1]
        return known

    async def _run_open(self, plan: Plan, context: Any, root: Any, variables: VariableValues) -> OpenRun | None:
        self.planned += 1
        run = PlanRun(self._schema, plan, context, root, variables, leaves_open=True)
        [row] = run.select(plan.root, [run.root], None)
        await run.finish()
        return None if run.failed else OpenRun(run, row)

    def _plan(
        self,
        planned: PlannedDocument,
        operation: core.OperationDefinitionNode,
        operation_name: str | None,
        variables: VariableValues,
    ) -> Plan | Fallback:
        """Return the plan for the current values of the conditions, or a Fallback if the operation is unsupported."""
        conditions = tuple(variables.coerced.get(name, core.Undefined) for name in planned.info.conditions)
        key = operation_name, conditions
        if key in planned.plans:
            return planned.plans[key]
        if any(value is None for value in conditions):
            return NULL_CONDITION  # graphql-core reports an error for each object with such a condition
        planner = Planner(
            self._schema,
            self._declarations,
            planned.info,
            operation,
            variables,
            hide_suggestions=self._hide_suggestions,
        )
        plan: Plan | Fallback
        try:
            plan = planner.plan()
        except (Unsupported, core.GraphQLError) as error:  # graphql-core reports a GraphQLError with its path
            plan = Fallback(f"The executor does not support this: {error}.")
        self._plan_cache.add(planned, key, plan)
        return plan

    async def _run(
        self, plan: Plan, context: Any, root: Any, variables: VariableValues, observer: Observer | None
    ) -> core.ExecutionResult:
        self.planned += 1
        if observer is not None:
            observer.plan_started()
        run = PlanRun(self._schema, plan, context, root, variables, observer)
        if plan.parts:
            return await self._run_serially(plan, run)
        [row] = run.select(plan.root, [run.root], None)
        await run.finish()
        if not run.failed:
            return core.ExecutionResult(row, None)
        self.slow += 1
        propagation = Propagation(run, self._max_errors)
        return core.ExecutionResult(propagation.data(plan.root, row), propagation.errors or None)

    async def _run_serially(self, plan: Plan, run: PlanRun) -> core.ExecutionResult:
        """Run root fields one after another, each with all fields below it. Stop if a null propagates to the root."""
        row: Row = {}
        propagation = Propagation(run, self._max_errors)
        for part in plan.parts:
            [part_row] = run.select(part, [run.root], None)
            await run.finish()
            data: Any = part_row
            if run.failed:
                data = propagation.data(part, part_row)
                if data is None:
                    self.slow += 1
                    return core.ExecutionResult(None, propagation.errors)
            row.update(data)
        self.slow += run.failed
        return core.ExecutionResult(row, propagation.errors or None)
