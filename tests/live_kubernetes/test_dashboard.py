"""The Grafana dashboard queries only exported metrics."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from poolwise.live.metrics import LiveMetrics

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "poolwise.json"


def test_every_metric_of_the_dashboard_is_exported() -> None:
    metrics = LiveMetrics(cast(Any, SimpleNamespace()))
    exported = {
        f"{family.name}{suffix}"
        for family in metrics.registry.collect()
        for suffix in {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
    }
    queried = {
        name
        for panel in json.loads(FILE.read_text())["panels"]
        for t in panel["targets"]
        for name in re.findall(r"poolwise_\w+", t["expr"])
    }
    assert len(queried) > 8 and queried <= exported, queried - exported
