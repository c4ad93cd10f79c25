"""The Grafana dashboard shows exactly the metrics that are served."""

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.server.conftest import Api

FILE = Path(__file__).parents[2] / "docs" / "deployment" / "grafana.json"
SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",), "gauge": ("",)}


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return loaded


def expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]


async def test_every_metric_of_the_dashboard_is_served(api: Api) -> None:
    """Every metric that is served is also on the dashboard."""
    families = list(text_string_to_metric_families((await api.client.get("/metrics")).text))
    served = {f"{each.name}{suffix}" for each in families for suffix in SUFFIXES[each.type]}
    variables = [each["definition"] for each in dashboard()["templating"]["list"] if "definition" in each]
    shown = set(re.findall(r"fanline_\w+", " ".join([*expressions(), *variables])))
    assert shown <= served
    assert served - shown == set()


async def test_labels_of_the_dashboard_exist(api: Api) -> None:
    """These are the labels by which expressions group, apart from `le` and `instance`, which Prometheus adds."""
    await api.ask("query Home { viewer { user { login } } }")
    text = (await api.client.get("/metrics")).text
    groups = [names for each in expressions() for names in re.findall(r"by \(([^)]*)\)", each)]
    grouped = {name.strip() for names in groups for name in names.split(",")}
    assert grouped == {"le", "operation", "rate", "reason"}
    assert 'fanline_operation_seconds_bucket{le="0.001",operation="Home"}' in text


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
