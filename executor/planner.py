"""Planning: a validated document becomes a plan, as far as the executor covers what it asks for.

Which fields are asked for under which key is left to graphql-core's own collecting of fields.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import graphql as core
from graphql.execution.collect_fields import FieldDetailsList, collect_fields, collect_subfields
from graphql.execution.values import VariableValues

from executor.arguments import Arguments
from executor.declarations import Declaration, Declarations
from executor.outputs import Abstract, Leaf, List, Object
from executor.plan import Ahead, Field, Output, Plan, Selection, Source
from executor.sources import Attribute, Batch, Each, Event, Single, TypeName
from executor.survey import Survey

if TYPE_CHECKING:
    from executor.run import Run


class Uncovered(Exception):
    """A document asks for something that the executor leaves to graphql-core; the message says what."""


class Planner:
    """Plans one operation for one choice of conditions; goes on planning while runs meet new types of an interface."""

    def __init__(
        self,
        schema: core.GraphQLSchema,
        declarations: Declarations,
        survey: Survey,
        operation: core.OperationDefinitionNode,
        variables: VariableValues,
        *,
        hide_suggestions: bool,
    ) -> None:
        self._schema = schema
        self._declarations = declarations
        self._survey = survey
        self._operation = operation
        self._variables = only(variables, survey.conditions)
        self._hide_suggestions = hide_suggestions

    def plan(self) -> Plan:
        """Make the plan. Raises Uncovered."""
        kind = self._operation.operation
        type_ = self._schema.get_root_type(kind)
        if self._declarations.any_test_is_async:
            raise Uncovered("a schema with types that are recognised asynchronously")
        if type_ is None:
            raise Uncovered(f"a {kind.value}, which the schema does not have")
        collected = collect_fields(
            self._schema, self._survey.fragments, self._variables, type_, self._operation, self._hide_suggestions
        )
        root = self._selection(type_, collected.grouped_field_set.items())
        parts = []
        if kind is core.OperationType.MUTATION:
            parts = [Selection(type_, [field], root.located) for field in root.fields]
        return Plan(self._operation, self._survey.fragments, root, parts)

    def _selection(self, type_: core.GraphQLObjectType, grouped: Iterable[tuple[str, FieldDetailsList]]) -> Selection:
        fields = [field for key, details in grouped if (field := self._field(type_, key, details))]
        return Selection(type_, fields, any(map(self._locates, fields)))

    def _beneath(self, type_: core.GraphQLObjectType, details: FieldDetailsList) -> Selection:
        collected = collect_subfields(
            self._schema,
            self._survey.fragments,
            self._variables,
            self._operation,
            type_,
            details,
            self._hide_suggestions,
        )
        return self._selection(type_, collected.grouped_field_set.items())

    def _field(self, parent: core.GraphQLObjectType, key: str, details: FieldDetailsList) -> Field | None:
        node = details[0].node
        definition = self._schema.get_field(parent, node.name.value)
        if definition is None:
            return None
        self._declarations.planned_fields += 1
        declared = self._declarations.of(definition)
        arguments = Arguments(definition, node, declared.convert, hide_suggestions=self._hide_suggestions)
        field = Field(key, details, definition, parent, self._source(parent, definition, declared, arguments))
        field.output = self._output(field, definition.type)
        field.ahead = self._ahead(field, declared, arguments)
        return field

    def _source(
        self, parent: core.GraphQLObjectType, definition: core.GraphQLField, declared: Declaration, arguments: Arguments
    ) -> Source:
        if definition is core.TypeNameMetaFieldDef:
            return TypeName(parent.name)
        if declared.attribute is not None:
            return Attribute(declared.attribute)
        own = declared.own
        if "batch" in own:
            return Batch(own["batch"], arguments, waits=declared.waits)
        if "single" in own:
            return Single(own["single"], arguments)
        return Event() if "live" in own else Each(definition.resolve, arguments)

    def _output(self, field: Field, type_: core.GraphQLOutputType) -> Output:
        nullable = not isinstance(type_, core.GraphQLNonNull)
        if isinstance(type_, core.GraphQLNonNull):
            type_ = type_.of_type
        if isinstance(type_, core.GraphQLList):
            return List(field, self._output(field, type_.of_type), nullable=nullable)
        if isinstance(type_, core.GraphQLObjectType):
            field.selection = self._beneath(type_, field.details)
            return Object(field, field.selection, self._declarations.record_of(type_), nullable=nullable)
        if isinstance(type_, core.GraphQLInterfaceType | core.GraphQLUnionType):
            return self._abstract(field, type_, nullable=nullable)
        return Leaf(type_, nullable=nullable)

    def _abstract(self, field: Field, type_: core.GraphQLAbstractType, *, nullable: bool) -> Abstract:
        records = self._declarations.records_of(type_)
        return Abstract(field, type_, records, lambda chosen: self._beneath(chosen, field.details), nullable=nullable)

    def _ahead(self, field: Field, declared: Declaration, arguments: Arguments) -> Ahead | None:
        """Plan what can begin with references, where the values are objects of one type."""
        references, selection = declared.own.get("references"), field.selection
        if references is None or selection is None or selection.located or not isinstance(field.output, Object):
            return None
        for each in selection.fields:
            each.early = bool(self._declarations.of(each.definition).own.get("needs_only_reference"))

        def stand_ins(run: "Run", parents: Sequence[Any]) -> Any:
            try:
                if field.source.lone:
                    return [references(run.context, **arguments.of(run))]
                return references(parents, run.context, **arguments.of(run))
            except Exception:
                return None  # the resolver fails in the same way, and is reported

        return Ahead(stand_ins, selection) if any(each.early for each in selection.fields) else None

    def _locates(self, field: Field) -> bool:
        """Tell whether a field, or anything beneath it, asks for its place in the response."""
        named = core.get_named_type(field.type)
        if isinstance(field.source, Each) or self._declarations.asks_for_place(named):
            return True
        if field.selection is not None:
            return field.selection.located
        return core.is_abstract_type(named) and self._declarations.any_asks_for_place


def only(variables: VariableValues, names: Sequence[str]) -> VariableValues:
    """Keep only some of a request's variables, for what outlives the request."""
    return VariableValues(
        {name: variables.sources[name] for name in names if name in variables.sources},
        {name: variables.coerced[name] for name in names if name in variables.coerced},
    )
