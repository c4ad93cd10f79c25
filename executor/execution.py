"""The executor of a schema: keeps plans, runs them, and hands to graphql-core what it does not cover, as a whole."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from inspect import isawaitable
from typing import Any

import graphql as core
from graphql.execution.values import VariableValues, get_variable_values

from executor.arguments import NO_VARIABLES
from executor.declarations import Declarations
from executor.plan import Plan, Row
from executor.planner import Planner, Uncovered, only
from executor.propagation import Propagation
from executor.run import Run
from executor.survey import Survey

KEPT_DOCUMENTS = 1000
KEPT_FIELDS = 20_000  # of all plans: a field takes nearly 2 KB, and a document has a plan for each choice of conditions


class Kept:
    """A document that stays planned: the reference to it keeps its identity from being given to another."""

    def __init__(self, document: core.DocumentNode) -> None:
        self.document = document
        self.survey = Survey.of(document)
        self.plans: dict[Hashable, Plan | None] = {}


class Operation:
    """One operation with its variables, ready to be run: once, or for each event of a subscription."""

    __slots__ = ("_executor", "_plan", "_variables")

    def __init__(self, executor: "Executor", plan: Plan, variables: VariableValues) -> None:
        self._executor = executor
        self._plan = plan
        self._variables = variables

    async def run(self, root_value: Any = None, context_value: Any = None) -> core.ExecutionResult:
        """Run the operation: see `Executor.execute`."""
        return await self._executor._run(self._plan, context_value, root_value, self._variables)


class Executor:
    """Executes validated documents of one schema, breadth first.

    `planned` counts the runs of plans, `slow` those of them that needed the pass over errors, and `fallen_back` the
    operations that were handed to graphql-core. Only the first `max_errors` errors are reported, since each takes time
    and memory. Documents are known by identity: keep what is parsed, so that its plan is found again. The last thousand
    stay planned, as long as their plans are not too large in all.
    """

    def __init__(
        self, schema: core.GraphQLSchema, *, hide_suggestions: bool = False, max_errors: int | None = None
    ) -> None:
        core.assert_valid_schema(schema)
        self._schema = schema
        self._declarations = Declarations(schema)
        self._hide_suggestions = hide_suggestions
        self._max_errors = max_errors
        self._kept: OrderedDict[int, Kept] = OrderedDict()
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
    ) -> core.ExecutionResult:
        """Execute one operation of a document: data and errors are those of graphql-core.

        Of a subscription, the root value is the event. Rows of a parent that stands at several places are one
        dictionary, so the data is for reading. If it is cancelled, all that it began is.
        """
        operation = self.prepare(document, variable_values, operation_name)
        if isinstance(operation, Operation):
            return await operation.run(root_value, context_value)
        if operation is not None:
            return core.ExecutionResult(None, operation)
        self.fallen_back += 1
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
        self, document: core.DocumentNode, variable_values: Mapping[str, Any] | None, operation_name: str | None = None
    ) -> Operation | list[core.GraphQLError] | None:
        """Plan an operation and coerce its variables, or say what is wrong with these; None if it is not covered."""
        kept = self._keep(document)
        chosen = kept.survey.operation(operation_name)
        if chosen is None or not kept.survey.covered:
            return None
        variables: VariableValues = NO_VARIABLES
        if chosen.variable_definitions:
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
        plan = self._plan(kept, chosen, operation_name, variables)
        if plan is not None and chosen.operation is core.OperationType.SUBSCRIPTION and not plan.root.located:
            variables = only(variables, kept.survey.beneath_roots(chosen))  # a filter may be large, and live for days
        return None if plan is None else Operation(self, plan, variables)

    def forget(self, document: core.DocumentNode) -> None:
        """Drop the plans of a document that will not be executed again."""
        self._kept.pop(id(document), None)

    def _keep(self, document: core.DocumentNode) -> Kept:
        kept = self._kept.get(id(document))
        if kept is None:
            kept = self._kept[id(document)] = Kept(document)
            if len(self._kept) > KEPT_DOCUMENTS:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(id(document))
        return kept

    def _plan(
        self, kept: Kept, operation: core.OperationDefinitionNode, operation_name: str | None, variables: VariableValues
    ) -> Plan | None:
        """Find or make the plan for these conditions; None if it asks for what is not covered."""
        choice = operation_name, tuple(variables.coerced.get(name, core.Undefined) for name in kept.survey.conditions)
        if choice in kept.plans:
            return kept.plans[choice]
        if any(value is None for value in choice[1]):
            return None  # where such a condition stands, there is an error for each object
        planner = Planner(
            self._schema,
            self._declarations,
            kept.survey,
            operation,
            variables,
            hide_suggestions=self._hide_suggestions,
        )
        try:
            plan = planner.plan()
        except (Uncovered, core.GraphQLError):  # the latter is an error at the places where fields are collected
            plan = None
        kept.plans[choice] = plan
        if self._declarations.planned_fields > KEPT_FIELDS:
            self._declarations.planned_fields = 0
            self._kept.clear()
        return plan

    async def _run(self, plan: Plan, context: Any, root: Any, variables: VariableValues) -> core.ExecutionResult:
        self.planned += 1
        run = Run(self._schema, plan, context, root, variables)
        if plan.parts:
            return await self._run_serially(plan, run)
        [row] = run.select(plan.root, [run.root], None)
        await run.finish()
        if not run.failed:
            return core.ExecutionResult(row, None)
        self.slow += 1
        propagation = Propagation(run, self._max_errors)
        return core.ExecutionResult(propagation.data(plan.root, row), propagation.errors or None)

    async def _run_serially(self, plan: Plan, run: Run) -> core.ExecutionResult:
        """Run root fields one after another, each with all that is beneath it, until one fails the whole."""
        row: Row = {}
        propagation = Propagation(run, self._max_errors)
        for alone in plan.parts:
            [part] = run.select(alone, [run.root], None)
            await run.finish()
            data: Any = part
            if run.failed:
                data = propagation.data(alone, part)
                if data is None:
                    self.slow += 1
                    return core.ExecutionResult(None, propagation.errors)
            row.update(data)
        self.slow += run.failed
        return core.ExecutionResult(row, propagation.errors or None)
