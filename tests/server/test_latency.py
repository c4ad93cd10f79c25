"""The histogram of latencies: clients choose the names of operations, but not how many there are."""

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from graph import Graph
from server.latency import ANONYMOUS, MAX_LENGTH, MAX_NAMES, OTHER, Latency
from server.settings import Settings
from tests.server.conftest import Api, serving


def counts(registry: CollectorRegistry) -> dict[str, float]:
    """Return the number of operations by label."""
    [family] = registry.collect()
    return {each.labels["operation"]: each.value for each in family.samples if each.name.endswith("_count")}


async def served_counts(api: Api) -> dict[str, float]:
    text = (await api.client.get("/metrics")).text
    return {
        sample.labels["operation"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "fanline_operation_seconds_count"
    }


def test_the_number_of_names_is_bounded() -> None:
    """Names of trusted documents always have labels; of the others, the first hundred have labels."""
    registry = CollectorRegistry()
    latency = Latency(registry)
    latency.trust(["Trusted"])
    for number in range(MAX_NAMES + 50):
        latency.observe(f"N{number}", 0.01)
    latency.observe("Trusted", 0.01)
    latency.observe("N0", 0.01)
    latency.observe(None, 0.01)

    found = counts(registry)
    assert len(found) == MAX_NAMES + 3
    assert (found["N0"], found["Trusted"], found[ANONYMOUS], found[OTHER]) == (2, 1, 1, 50)
    assert len(latency._by_name) == MAX_NAMES + 2  # names beyond the limit take no memory


def test_a_long_name_has_no_label() -> None:
    registry = CollectorRegistry()
    latency = Latency(registry)
    latency.observe("a" * (MAX_LENGTH + 1), 0.01)
    latency.observe("b" * MAX_LENGTH, 0.01)
    assert counts(registry) == {ANONYMOUS: 0, OTHER: 1, "b" * MAX_LENGTH: 1}


async def test_operations_are_counted_by_name(api: Api) -> None:
    """Executed operations count: by POST or WebSocket, with a name in the document or chosen by the request."""
    await api.ask("query Home { viewer { user { login } } }")
    await api.ask("{ viewer { user { login } } }")
    await api.ask("query Wrong { nothing }")
    body = {"query": "query A { viewer { id } } query B { viewer { id } }", "operationName": "B"}
    await api.client.post("/graphql", json=body)
    async with api.socket() as socket:
        await socket.subscribe("1", "query Home { viewer { user { login } } }")
        assert (await socket.receive())["type"] == "next"
        assert (await socket.receive())["type"] == "complete"
    assert await served_counts(api) == {"Home": 2, "B": 1, ANONYMOUS: 1, OTHER: 0}


async def test_trusted_documents_have_labels_before_they_are_used(settings: Settings, graph: Graph) -> None:
    file = settings.data_dir / "home.graphql"
    file.write_text("query TrustedHome { viewer { user { login } } }")
    async with serving(settings.model_copy(update={"trusted_documents": file}), graph) as api:
        assert (await served_counts(api))["TrustedHome"] == 0
