"""Files of deploy/kubernetes, as tests use them."""

from __future__ import annotations

from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[3] / "deploy" / "kubernetes"


def shipped_scheduler() -> str:
    """Return the scheduler file that the deployment mounts."""
    objects = yaml.safe_load_all((DEPLOY / "deployment.yaml").read_text())
    (text,) = (item["data"]["scheduler.toml"] for item in objects if item["kind"] == "ConfigMap")
    return str(text)
