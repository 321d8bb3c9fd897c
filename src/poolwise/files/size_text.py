"""Values of a machine file in words: "1280 GiB of pool memory in each rack" for machine.pool.memory.memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SizeWords:
    """What a value of a machine is an amount of.

    Attributes
    ----------
    noun : such as "pool memory in each rack", or "racks"
    counted : whether an amount is a number of them; else it is so much "of" it
    one : what is paid for: one of them, such as "rack", or of what there is so much, such as "pool memory"; "" if unknown
    """

    noun: str
    counted: bool = False
    one: str = ""

    @classmethod
    def of(cls, path: str, tables: Mapping[str, Any]) -> SizeWords:
        """Say what a dotted path of a study or a plan is, given the tables of its machine; the path itself if unknown."""
        section, name, field = [*path.removeprefix("machine.").split(".", 2), "", ""][:3]
        entry = _entry(tables, section, name)
        if entry is None or not path.startswith("machine."):
            return cls(path.removeprefix("machine."))
        if section == "rack" and field == "count":
            return cls("racks" if len(tables["rack"]) == 1 else f"racks of kind {name}", counted=True, one="rack")
        if section == "rack" and field.startswith("nodes."):
            return cls(
                f"{field.removeprefix('nodes.')} nodes in each rack", counted=True, one=f"{field.removeprefix('nodes.')} node"
            )
        where = _where(section, name, entry)
        if field == "count":
            return cls(f"{name} {section}s {where}", counted=True, one=f"{name} {section}")
        what = "pool memory" if section == "pool" and field == "memory" else field.replace("_", " ")
        several = section == "pool" and len(tables.get("pool", ())) > 1 and name != field
        what += f" ({name})" if several else ""
        paid = what if section == "pool" else f"{what} of {name} {section}s"
        return cls(f"{what} {where}", one=paid)

    def phrase(self, amount: str) -> str:
        """Put an amount, with its unit, and the noun together."""
        return f"{amount} {self.noun}" if self.counted else f"{amount} of {self.noun}"


def _entry(tables: Mapping[str, Any], section: str, name: str) -> Mapping[str, Any] | None:
    entries = tables.get(section)
    if not isinstance(entries, list):
        return None
    if name.isdecimal():
        return entries[int(name)] if int(name) < len(entries) else None
    return next((entry for entry in entries if entry.get("name") == name), None)


def _where(section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Of which there is one such amount."""
    if section == "pool":
        return "in each rack" if entry.get("per", "rack") == "rack" else "in the whole machine"
    if section == "device":
        at = str(entry.get("at", "rack"))
        return {"rack": "in each rack", "machine": "in the whole machine"}.get(at, f"at each {at} node")
    return f"in each {name} {section}"
