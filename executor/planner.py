"""The planner: turns a validated document into a plan, if the executor supports it.

graphql-core collects the fields of each selection.
"""

from collections.abc import Iterable, Sequence

import graphql as core
from graphql.execution.collect_fields import FieldDetailsList, collect_fields, collect_subfields
from graphql.execution.values import VariableValues

from .arguments import Arguments
from .declarations import Declaration, Declarations
from .document_info import DocumentInfo
from .outputs import Abstract, Leaf, List, Object
from .plan import Field, Output, Plan, Prefetch, Selection, Source
from .references import References
from .sources import Attribute, Batch, OrdinaryResolver, RootValue, SubscriptionEvent, TypeName


class Unsupported(Exception):
    """A document needs a feature that only graphql-core supports. The message names the feature."""


class Planner:
    """Plans one operation for one combination of `@skip` and `@include` conditions.

    Selections of interfaces and unions are planned during runs, when the first value of a type occurs.
    """

    def __init__(
        self,
        schema: core.GraphQLSchema,
        declarations: Declarations,
        info: DocumentInfo,
        operation: core.OperationDefinitionNode,
        variables: VariableValues,
        *,
        hide_suggestions: bool,
    ) -> None:
        self._schema = schema
        self._declarations = declarations
        self._info = info
        self._operation = operation
        self._variables = restrict(variables, info.conditions)
        self._hide_suggestions = hide_suggestions
        self._leaves: dict[tuple[str, bool], Leaf] = {}

    def plan(self) -> Plan:
        """Return the plan. Raises Unsupported if graphql-core must execute the operation."""
        kind = self._operation.operation
        type_ = self._schema.get_root_type(kind)
        if self._declarations.has_async_type_checks:
            raise Unsupported("asynchronous type checks")
        if type_ is None:
            raise Unsupported(f"the schema has no type for a {kind.value}")
        collected = collect_fields(
            self._schema, self._info.fragments, self._variables, type_, self._operation, self._hide_suggestions
        )
        root = self._selection(type_, collected.grouped_field_set.items())
        parts = []
        if kind is core.OperationType.MUTATION:
            parts = [Selection(type_, [field], root.needs_paths) for field in root.fields]
        return Plan(self._operation, self._info.fragments, root, parts)

    def _selection(self, type_: core.GraphQLObjectType, grouped: Iterable[tuple[str, FieldDetailsList]]) -> Selection:
        fields = [field for key, details in grouped if (field := self._field(type_, key, details))]
        return Selection(type_, fields, any(map(self._needs_paths, fields)))

    def _subselection(self, type_: core.GraphQLObjectType, details: FieldDetailsList) -> Selection:
        collected = collect_subfields(
            self._schema,
            self._info.fragments,
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
        field.is_independent = definition is core.TypeNameMetaFieldDef or declared.is_independent
        field.together = declared.own.get("together")
        field.output = self._output(field, definition.type)
        field.prefetch = self._prefetch(field, declared, arguments)
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
            return Batch(own["batch"], arguments, is_async=declared.is_async)
        if "single" in own:
            return RootValue(own["single"], arguments)
        return SubscriptionEvent() if "live" in own else OrdinaryResolver(definition.resolve, arguments)

    def _output(self, field: Field, type_: core.GraphQLOutputType) -> Output:
        nullable = not isinstance(type_, core.GraphQLNonNull)
        if isinstance(type_, core.GraphQLNonNull):
            type_ = type_.of_type
        if isinstance(type_, core.GraphQLList):
            return List(field, self._output(field, type_.of_type), nullable=nullable)
        if isinstance(type_, core.GraphQLObjectType):
            field.selection = self._subselection(type_, field.details)
            return Object(field, field.selection, self._declarations.record_of(type_), nullable=nullable)
        if isinstance(type_, core.GraphQLInterfaceType | core.GraphQLUnionType):
            return self._abstract(field, type_, nullable=nullable)
        leaf = self._leaves.get((type_.name, nullable))
        if leaf is None:
            leaf = self._leaves[type_.name, nullable] = Leaf(type_, nullable=nullable)
        return leaf

    def _abstract(self, field: Field, type_: core.GraphQLAbstractType, *, nullable: bool) -> Abstract:
        records = self._declarations.records_of(type_)
        return Abstract(
            field, type_, records, lambda chosen: self._subselection(chosen, field.details), nullable=nullable
        )

    def _prefetch(self, field: Field, declared: Declaration, arguments: Arguments) -> Prefetch | None:
        """Return the fields to prefetch, if the field's values are objects of one type and it declares references.

        Return None if no selected field of the values can be resolved from a reference alone.
        """
        function, selection = declared.own.get("references"), field.selection
        if function is None or selection is None or selection.needs_paths or not isinstance(field.output, Object):
            return None
        for each in selection.fields:
            each.needs_only_reference = bool(self._declarations.of(each.definition).own.get("needs_only_reference"))
        if not any(each.needs_only_reference for each in selection.fields):
            return None
        references = References(function, arguments, is_root_value=field.source.is_root_value)
        return Prefetch(references.of, selection)

    def _needs_paths(self, field: Field) -> bool:
        """Return True if a field, or any field below it, needs its path in the response."""
        named = core.get_named_type(field.type)
        if isinstance(field.source, OrdinaryResolver) or self._declarations.type_needs_paths(named):
            return True
        if field.selection is not None:
            return field.selection.needs_paths
        return core.is_abstract_type(named) and self._declarations.any_field_needs_paths


def restrict(variables: VariableValues, names: Sequence[str]) -> VariableValues:
    """Return only the variables with these names, so that the others are not kept in memory after the request."""
    return VariableValues(
        {name: variables.sources[name] for name in names if name in variables.sources},
        {name: variables.coerced[name] for name in names if name in variables.coerced},
    )
