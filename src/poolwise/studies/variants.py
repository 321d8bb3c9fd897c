"""Resolved studies: documents in which files are inlined, and --set and each combination of varied values are applied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.errors import InputError, Problems
from poolwise.files.component import Component
from poolwise.files.document import SET, Document, Origin
from poolwise.files.study import StudyFile, inline, inline_all
from poolwise.hashing import canonical
from poolwise.studies.cells import Parameter

FIXED = ("vary", "seeds", "measure", "version", "title", "today")
"""Sections of a study that cannot be varied."""


@dataclass(frozen=True)
class StudyVariant:
    """One combination of varied values.

    Attributes
    ----------
    parameters : dotted path -> value as shown in labels
    document : the study with these values
    today : the same study under the configuration in use today; None if the study has none
    """

    parameters: dict[str, Parameter]
    document: Document
    today: StudyVariant | None = None


@dataclass(frozen=True)
class ResolvedStudy:
    """A study whose files are inlined and whose values are set.

    Attributes
    ----------
    document : the study
    varied : dotted path -> list of values
    """

    document: Document
    varied: Mapping[str, list[Any]]

    @classmethod
    def of(cls, document: Document, settings: Mapping[str, Any], problems: Problems) -> ResolvedStudy:
        """Inline the files of a document, and replace values as --set does; a path that is set is no longer varied."""
        document, varied = inline_all(document, problems), dict[str, list[Any]]()
        for key, value in sorted(settings.items(), key=lambda item: item[0].count(".")):
            with problems.attempt():
                document = _with_setting(document, key, value)
        with problems.attempt():
            varied = _varied_values(document)
        if not isinstance(document.tables.get("machine"), dict) and "machine" not in varied:
            varied = {path: values for path, values in varied.items() if not path.startswith("machine.")}  # no such paths
        return cls(document, varied)

    def variants(self, problems: Problems) -> Iterator[StudyVariant]:
        """Yield the variant of every combination of values."""
        for values in itertools.product(*self.varied.values()):
            chosen = dict(zip(self.varied, values, strict=True))
            with problems.attempt():
                document = with_values(self.document, chosen, "vary")
                parameters = {path: _shown(value) for path, value in chosen.items()}
                yield StudyVariant(parameters, document, _today(document, parameters) if "today" in document.tables else None)

    @property
    def base(self) -> Document:
        """The study with the first value of each varied path of machine and workload, whose only values may be in [vary]."""
        first = {path: values[0] for path, values in self.varied.items() if path.startswith(("machine", "workload"))}
        return with_values(self.document, first, "vary")

    @property
    def shown(self) -> dict[str, tuple[Parameter, ...]]:
        """Dotted path -> values as shown in labels."""
        return {path: tuple(_shown(value) for value in values) for path, values in self.varied.items()}


def _with_setting(document: Document, key: str, value: Any) -> Document:
    written = document.tables.get("vary")
    varied = _flat(written) if isinstance(written, dict) else {}
    if key.startswith("vary."):
        changed = document.with_tables(vary={**varied, key.removeprefix("vary."): value})
        return changed.with_origin(key, Origin(SET))
    for path in varied:
        if key.startswith(f"{path}."):
            message = f"'{key}' cannot be set because '{path}' is varied"
            raise InputError(message, field=key, remedy=f"set '{path}' or 'vary.{path}'")
    if key in varied:
        document = document.with_tables(vary={path: values for path, values in varied.items() if path != key})
    return inline(document.with_value(key, value, Origin(SET)), key)


def _varied_values(document: Document) -> dict[str, list[Any]]:
    """Return dotted path -> list of values of a study; raises InputError for paths that cannot be varied."""
    written = document.tables.get("vary", {})
    varied = _flat(written) if isinstance(written, dict) else {}  # validation of the file rejects other types
    for path, values in varied.items():
        location = ("vary", path) if path in written else ("vary", *path.split("."))
        if not isinstance(values, list) or not values:
            raise document.error(location, "expected a non-empty list of values", f'write "{path}" = [...]')
        if path.partition(".")[0] in FIXED:
            raise document.error(location, f"'{path}' cannot be varied", "vary machine, workload, scheduler or performance")
        if path.partition(".")[0] not in StudyFile.model_fields:
            sections = [section for section in StudyFile.model_fields if section not in FIXED]
            raise document.unknown(location, "section", path.partition(".")[0], sections)
    return varied


def with_values(document: Document, chosen: Mapping[str, Any], section: str) -> Document:
    """Replace the chosen values, outer paths before inner ones; errors report the value's line in the given section."""
    fixed = {*document.tables} - {"scheduler"} if section == "space" else FIXED
    for path, value in sorted(chosen.items(), key=lambda item: item[0].count(".")):
        _, line, label = document.location((section, path))
        document = inline(document.with_value(path, value, Origin(label or section, line), fixed), path)
    return document


def _today(document: Document, parameters: Mapping[str, Parameter]) -> StudyVariant:
    """Return today's configuration of a variant, and the varied values that it keeps."""
    written = document.tables["today"]
    replaced = {part: written[part] for part in ("machine", "scheduler") if part in written}
    left = {path: value for path, value in parameters.items() if path.partition(".")[0] not in replaced}
    today = with_values(document, replaced, "today").without("today")
    return StudyVariant({"today": written.get("name", "today"), **left}, today)


def _shown(value: Any) -> Parameter:
    """Return a varied value as shown in labels."""
    if isinstance(value, dict):
        return str(Component.model_validate(value)) if isinstance(value.get("name"), str) else canonical(value)
    return value if isinstance(value, bool | int | float | str) else canonical(value)


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Flatten [vary], which may have quoted keys or nested tables."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{before}{key}"
        flat |= _flat(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return flat
