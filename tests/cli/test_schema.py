import json
import re
import tomllib

import pytest

from poolwise import catalog
from poolwise.cli import app as cli
from poolwise.cli.schema import SchemaKind, schema_of
from poolwise.files.kind import FOLDERS

KINDS = {format: FOLDERS[format.value] for format in SchemaKind}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def problems(value, schema, whole, at=""):
    """Return the violations of a schema; supports the part of JSON Schema that Poolwise uses."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        tried = [problems(value, option, whole, at) for option in schema["anyOf"]]
        return [] if [] in tried else max(tried, key=lambda found: max(map(len, found)))
    kind = schema.get("type")
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else (int, float)):
            return [f"{at}: not of type {kind}"]
    elif kind is not None and not isinstance(value, TYPES[kind]):
        return [f"{at}: not of type {kind}"]
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return [f"{at}: not one of the choices"]
    if "minimum" in schema and value < schema["minimum"]:
        return [f"{at}: too small"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [f"{at}: not a name"]
    if isinstance(value, list):
        return [p for k, item in enumerate(value) for p in problems(item, schema.get("items", {}), whole, f"{at}.{k}")]
    if isinstance(value, dict):
        return object_problems(value, schema, whole, at)
    return []


def object_problems(value, schema, whole, at):
    faults = [f"{at}.{name}: missing" for name in schema.get("required", []) if name not in value]
    inner, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in inner or isinstance(other, dict):
            faults += problems(item, inner.get(name, other), whole, f"{at}.{name}")
        elif not other:
            faults.append(f"{at}.{name}: unknown")
    return faults


@pytest.mark.parametrize("format", list(SchemaKind))
def test_schema_is_printed_as_one_json_object(format, capsys):
    cli._discover()
    assert cli.run(["schema", format.value]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of(format)


@pytest.mark.parametrize(
    ("format", "name"),
    [(f, name) for f, kind in KINDS.items() for name, _ in catalog.shipped(kind)],
)
def test_shipped_files_match_the_schema_and_changed_ones_do_not(format, name):
    content = tomllib.loads(catalog.find(KINDS[format], name).read_text())
    schema = schema_of(format)
    if format is SchemaKind.PLAN:
        assert problems(content, schema, schema) == []
        schema = of_kind(content["plan"]["kind"], schema)
    assert problems(content, schema, schema) == []
    assert problems(content | {"versoin": 1}, schema, schema) == [".versoin: unknown"]
    assert problems(content | {"version": 2}, schema, schema) == [".version: not one of the choices"]
    assert problems({k: v for k, v in content.items() if k != "version"}, schema, schema) == [".version: missing"]


def of_kind(kind, schema):
    """Return the schema of one kind of plans."""
    parts = schema["$defs"]
    files = [parts[option["$ref"].removeprefix("#/$defs/")] for option in schema["anyOf"]]
    sections = [parts[file["properties"]["plan"]["$ref"].removeprefix("#/$defs/")] for file in files]
    (k,) = [k for k, section in enumerate(sections) if section["properties"]["kind"]["const"] == kind]
    return files[k] | {"$defs": parts}


def test_quantity_is_a_string_and_a_study_may_contain_a_machine():
    study = tomllib.loads(catalog.find("studies", "cerit-pools").read_text())
    machine = tomllib.loads(catalog.find("machines", "cerit-racks").read_text())
    schema = schema_of(SchemaKind.STUDY)
    assert problems(study | {"machine": machine}, schema, schema) == []
    assert problems(study | {"scheduler": "catalog:fm-easy"}, schema, schema) == []
    machine["node"][0]["memory"] = 16
    assert problems(study | {"machine": machine}, schema, schema) == [".machine.node.0.memory: not of type string"]


def test_schema_names_keys_as_files_write_them():
    link = schema_of(SchemaKind.MACHINE)["$defs"]["Link"]
    assert {"from", "to", "bandwidth", "latency"} <= link["properties"].keys()
