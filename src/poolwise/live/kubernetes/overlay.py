"""Overlay files: TOML with operator settings that the cluster's objects do not contain."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.machine import RACK_LABEL, ClusterLayout
from poolwise.units import parse

_KNOWN = ("allocation", "rack_label", "link", "version")


def read_layout(file: Path | None) -> ClusterLayout:
    """Read an overlay file; raise InputError with file and field."""
    if file is None:
        return ClusterLayout()
    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read the file: {error}", file=file, field="--machine", remedy="write a TOML file") from None
    for key in content:
        if key not in _KNOWN:
            raise InputError(f"unknown key '{key}'", file=file, field=key, remedy=f"use: {', '.join(_KNOWN)}")
    view = content.get("allocation")
    if view not in (None, "shared", "whole"):
        raise InputError(f"invalid allocation '{view}'", file=file, field="allocation", remedy='write "shared" or "whole"')
    try:
        link = parse(content["link"], "bandwidth") if "link" in content else 0
    except ValueError as error:
        raise InputError(str(error), file=file, field="link", remedy='write a bandwidth, such as "10 GB/s"') from None
    return ClusterLayout(view, str(content.get("rack_label", RACK_LABEL)), link)
