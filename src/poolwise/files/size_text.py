"""Descriptions of values in machine files, such as "1280 GiB of pool memory in each rack" for machine.pool.memory.memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SizeText:
    """Wording for amounts of one value of a machine file.

    Attributes
    ----------
    noun : noun phrase, such as "pool memory in each rack" or "racks"
    counted : whether the amount is a number of items ("8 racks") rather than a quantity ("8 GiB of ...")
    one : what one price buys: an item, such as "rack", or a quantity, such as "pool memory"; "" if unknown
    """

    noun: str
    counted: bool = False
    one: str = ""

    @classmethod
    def of(cls, path: str, tables: Mapping[str, Any]) -> SizeText:
        """Describe a dotted path of a study or plan, given the tables of its machine; unknown paths stay as written."""
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
        location = _location(section, name, entry)
        if field == "count":
            return cls(f"{name} {section}s {location}", counted=True, one=f"{name} {section}")
        what = "pool memory" if section == "pool" and field == "memory" else field.replace("_", " ")
        several = section == "pool" and len(tables.get("pool", ())) > 1 and name != field
        what += f" ({name})" if several else ""
        paid = what if section == "pool" else f"{what} of {name} {section}s"
        return cls(f"{what} {location}", one=paid)

    def phrase(self, amount: str) -> str:
        """Combine an amount (with its unit) and the noun."""
        return f"{amount} {self.noun}" if self.counted else f"{amount} of {self.noun}"

    def setting(self, number: str) -> str:
        """Combine a number without a unit and the noun: "8 racks", "cores in each thin node 8"."""
        return self.phrase(number) if self.counted else f"{self.noun} {number}".lstrip()


def _entry(tables: Mapping[str, Any], section: str, name: str) -> Mapping[str, Any] | None:
    entries = tables.get(section)
    if not isinstance(entries, list):
        return None
    if name.isdecimal():
        return entries[int(name)] if int(name) < len(entries) else None
    return next((entry for entry in entries if entry.get("name") == name), None)


def _location(section: str, name: str, entry: Mapping[str, Any]) -> str:
    """Describe where one amount of a value is: in each rack, in each node, or in the machine."""
    if section == "pool":
        return "in each rack" if entry.get("per", "rack") == "rack" else "in the whole machine"
    if section == "device":
        at = str(entry.get("at", "rack"))
        return {"rack": "in each rack", "machine": "in the whole machine"}.get(at, f"at each {at} node")
    return f"in each {name} {section}"
