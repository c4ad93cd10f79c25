"""The alerts of the documentation and the dashboard are valid PromQL about metrics that exist."""

import re
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deployment.proxies import FOLDER
from tests.docs.blocks import ROOT
from tests.server.conftest import Api, api, settings
from tests.server.test_dashboard import SUFFIXES, expressions

__all__ = ["api", "settings"]

PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
UNITS = {"seconds": "s", "minute": "m", "minutes": "m"}
UP = 'up{job="fanline"} == 0'  # Prometheus' own metric; the page names /health/ready instead


def rules() -> list[dict[str, Any]]:
    """Return the alerts of the file for Prometheus."""
    [group] = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def listed() -> dict[str, str | None]:
    """Return the expressions in the table of the page, with their durations."""
    table = PAGE.partition("\n## Alerts\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`/]+)` \| (?:(\d+) (\w+))? *\|", table, re.M)
    return {expression: f"{number}{UNITS[unit]}" if number else None for expression, number, unit in rows}


def test_the_page_and_the_file_have_the_same_alerts() -> None:
    assert listed() == {rule["expr"]: rule.get("for") for rule in rules() if rule["expr"] != UP}
    assert len(listed()) == 11


def test_alerts_have_names_and_summaries() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert set(rule) - {"for"} == {"alert", "expr", "annotations"}
        assert rule["annotations"]["summary"].endswith(".")


def test_the_job_of_the_alerts_is_that_of_the_scrape_configuration() -> None:
    assert "job_name: fanline\n" in (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize("expression", [rule["expr"] for rule in rules()])
def test_an_alert_compares(expression: str) -> None:
    """An alert fires for each series of the result, so an expression without a comparison would always fire."""
    parsed = promql_parser.parse(expression)
    assert isinstance(parsed, promql_parser.BinaryExpr)
    assert re.search("[<>]|[=!]=", str(parsed.op))


def test_the_dashboard_is_valid() -> None:
    for expression in expressions():
        promql_parser.parse(expression.replace("$__rate_interval", "5m"))


async def test_every_metric_of_an_alert_is_served(api: Api) -> None:
    """Rates are taken of counters only: the rate of a gauge would count each decrease as a restart."""
    families = list(text_string_to_metric_families((await api.client.get("/metrics")).text))
    served = {f"{each.name}{suffix}": each.type for each in families for suffix in SUFFIXES[each.type]}
    for expression in [rule["expr"] for rule in rules()] + expressions():
        assert set(re.findall(r"\bfanline_\w+", expression.replace("$", ""))) <= set(served), expression
        for name in re.findall(r"(?:rate|increase)\((\w+)", expression):
            assert served[name] != "gauge", expression
