"""Generated documents over a Strawberry schema with records, batches and references, with faulty data."""

import random
from typing import Any

from graphql import ExecutionResult, execute, parse, validate

from executor import Executor
from tests.executor.differential.comparison import differences
from tests.executor.differential.documents import DocumentWriter
from tests.executor.differential.tapes import Tape
from tests.executor.shops import Stock, shop_schema

DOCUMENTS, LONG_DOCUMENTS = 100, 20_000
FAULTS = (0, 4, 15)


async def test_generated_queries_over_records(long_profile: bool) -> None:
    """The executor with asynchronous resolvers returns what graphql-core returns with synchronous ones."""
    plain = shop_schema(asynchronous=False)._schema
    executors = [Executor(shop_schema(asynchronous=asynchronous)._schema) for asynchronous in (False, True)]
    for seed in range(LONG_DOCUMENTS if long_profile else DOCUMENTS):
        tape = Tape(random.Random(seed).randbytes(300))  # noqa: S311 - a test's choices
        written = DocumentWriter(plain, tape, depth=5, fields=22, free=False).write()
        document = parse(written.text)
        assert validate(plain, document) == [], written.text
        for faults in FAULTS:
            stock = Stock(seed, faults)
            options: dict[str, Any] = {
                "context_value": stock,
                "variable_values": written.variables,
                "operation_name": written.operation_name,
            }
            expected = execute(plain, document, **options)
            assert isinstance(expected, ExecutionResult)
            for executor in executors:
                actual = await executor.execute(document, **options)
                found = differences(expected, actual)
                assert not found, "\n".join([*found, f"seed {seed}, {faults}% faults", written.text])
    for executor in executors:
        assert executor.fallen_back == 0
        assert 0 < executor.slow < executor.planned
