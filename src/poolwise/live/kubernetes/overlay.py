"""Overlay files: TOML that says of a cluster what its objects do not."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.machine import RACK_LABEL, ClusterLayout
from poolwise.units import parse

_KNOWN = ("allocation", "rack_label", "link", "version")


def read_layout(file: Path | None) -> ClusterLayout:
    """Read an overlay; raises InputError naming file and field."""
    if file is None:
        return ClusterLayout()
    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=file, field="--machine", remedy="write a TOML file") from None
    for key in content:
        if key not in _KNOWN:
            raise InputError(f"'{key}' is unknown", file=file, field=key, remedy=f"there are: {', '.join(_KNOWN)}")
    view = content.get("allocation")
    if view not in (None, "shared", "whole"):
        raise InputError(f"'{view}' is no allocation", file=file, field="allocation", remedy='write "shared" or "whole"')
    try:
        link = parse(content["link"], "bandwidth") if "link" in content else 0
    except ValueError as error:
        raise InputError(str(error), file=file, field="link", remedy='such as "10 GB/s"') from None
    return ClusterLayout(view, str(content.get("rack_label", RACK_LABEL)), link)
