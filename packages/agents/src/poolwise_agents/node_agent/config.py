"""Configuration file of node agents: the devices of nodes, their reach, and the commands that attach them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from poolwise.errors import Problems
from poolwise.files.document import Document
from poolwise.files.fields import Bandwidth, Label, Section, Time
from poolwise.files.validation import validate
from poolwise.quantities import SECOND
from poolwise_agents.node_agent.template import LABEL, check_placeholders, placeholders

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_QUANTITY = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[mkMGTPE]|[KMGTPE]i)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TEMPLATE = "template"  # attribute of a device with the name of the template by which other nodes attach it
MAX_ATTRIBUTES = 32  # Kubernetes' limit for attributes and capacities of a device together

Driver = Annotated[str, Field(pattern=rf"^[a-z][-a-z0-9]{{0,61}}(?:\.{LABEL})*$", max_length=57)]
NodeName = Annotated[str, Field(pattern=rf"^{LABEL}(?:\.{LABEL})*$", max_length=253)]
DeviceName = Annotated[str, Field(pattern=rf"^{LABEL}$")]


class MountSection(Section):
    """A folder or file of the node that is mounted into containers."""

    host: str = Field(pattern="^/")
    container: str = Field(pattern="^/")
    options: tuple[str, ...] = ("ro", "nosuid", "nodev", "bind")


class DeviceNodeSection(Section):
    """A device node below /dev for containers; `host` may be a symbolic link, which is resolved when a pod starts."""

    host: str = Field(pattern="^/dev/")
    container: str = Field(default="", pattern="^(/dev/.*)?$")
    permissions: Literal["r", "rw", "rwm"] = "rw"


class TemplateSection(Section):
    """Commands that attach a device of another node to this node, and the edits to containers."""

    attach: tuple[str, ...] = ()  # commands as argument lists, without a shell; they must be idempotent
    verify: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    time_limit: Time = 30 * SECOND  # timeout of each command (ns)
    environment: dict[str, str] = Field(default_factory=dict)  # environment variables of containers
    mounts: tuple[MountSection, ...] = ()
    device_nodes: tuple[DeviceNodeSection, ...] = ()
    patterns: dict[str, str] = Field(default_factory=dict)  # regular expressions of attributes, in place of the default

    @property
    def needs_attachment(self) -> bool:
        """True if a command has to run before a pod may be bound."""
        return bool(self.attach or self.verify)

    def texts(self) -> tuple[str, ...]:
        """Return all texts that may contain placeholders."""
        files = [text for mount in self.mounts for text in (mount.host, mount.container)]
        files += [text for node in self.device_nodes for text in (node.host, node.container)]
        return (*self.attach, *self.verify, *self.detach, *self.environment.values(), *files)

    @field_validator("attach", "verify", "detach")
    @classmethod
    def _absolute(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if command and not re.fullmatch(r"/[^{}\0]+", command[0]):
            raise ValueError(f"the program {command[0]!r} must be an absolute path without placeholders")
        return command

    @field_validator("environment")
    @classmethod
    def _variables(cls, environment: dict[str, str]) -> dict[str, str]:
        if wrong := [name for name in environment if not _VARIABLE.fullmatch(name)]:
            raise ValueError(f"{wrong[0]!r} is not a valid name of an environment variable")
        return environment

    @field_validator("patterns")
    @classmethod
    def _patterns(cls, patterns: dict[str, str]) -> dict[str, str]:
        for name, pattern in patterns.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"the pattern of '{name}' is not a valid regular expression: {error}") from None
        return patterns


class DeviceSection(Section):
    """A device."""

    name: DeviceName
    template: str | None = None  # template by which nodes attach it; without one, containers get nothing
    attributes: dict[str, bool | int | str] = Field(default_factory=dict)  # attributes and capacity as in ResourceSlices
    capacity: dict[str, str] = Field(default_factory=dict)
    shared: bool = False  # whether several claims may have parts of its capacity

    @field_validator("attributes")
    @classmethod
    def _attributes(cls, attributes: dict[str, bool | int | str]) -> dict[str, bool | int | str]:
        for name, value in attributes.items():
            if not _IDENTIFIER.fullmatch(name) or name == TEMPLATE:
                raise ValueError(f"'{name}' is not a valid attribute name (letters, digits and _; not '{TEMPLATE}')")
            if isinstance(value, str) and not 0 < len(value) <= 64:
                raise ValueError(f"the text of '{name}' must have 1 to 64 characters")
        return attributes

    @field_validator("capacity")
    @classmethod
    def _capacity(cls, capacity: dict[str, str]) -> dict[str, str]:
        for name, value in capacity.items():
            if not _IDENTIFIER.fullmatch(name) or not _QUANTITY.fullmatch(value):
                raise ValueError(f'{name} = "{value}" is not a valid Kubernetes quantity, such as memory = "40Gi"')
        return capacity


class PoolSection(Section):
    """Devices published by one node."""

    name: NodeName
    node: NodeName  # node whose agent publishes them
    # nodes that can use them: only that node, nodes with these labels, or all
    reach: Literal["node", "all"] | dict[str, str] = "node"
    device: tuple[DeviceSection, ...] = Field(min_length=1)


class LinkSection(Section):
    """A network link of every node, whose load is measured with counters of received and sent bytes."""

    name: DeviceName
    # network interface whose counters in /sys/class/net are read
    interface: str = Field(default="", pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$|^$")
    command: tuple[str, ...] = ()  # command that prints the two counters, instead of an interface
    bandwidth: Bandwidth = Field(gt=0)  # MB/s in each direction


class MeasureLinksSection(Section):
    """Interval of link measurements, and the change of load (percentage points) that is published."""

    every: Time = Field(default=15 * SECOND, ge=SECOND)
    percent: int = Field(default=5, ge=1, le=100)
    link: tuple[LinkSection, ...] = Field(min_length=1)


class FoldersSection(Section):
    """Folders on the node."""

    state: Path = Path("/var/lib/poolwise/node-agent")
    cdi: Path = Path("/var/run/cdi")
    plugins: Path = Path("/var/lib/kubelet/plugins")
    registry: Path = Path("/var/lib/kubelet/plugins_registry")


class NodeAgentFile(Section):
    """Configuration file of node agents; all nodes may use the same file."""

    version: int
    driver: Driver
    pool: tuple[PoolSection, ...] = ()
    template: dict[Label, TemplateSection] = Field(default_factory=dict)
    links: MeasureLinksSection | None = None
    folders: FoldersSection = FoldersSection()


def load_node_agent(file: Path) -> NodeAgentFile:
    """Read the configuration of a node agent; raises InputError for all problems, with lines and remedies."""
    document = Document.read(file)
    config = validate(NodeAgentFile, document)
    problems = Problems()
    for name, template in config.template.items():
        with problems.attempt(), document.errors_at("template", name):
            check_placeholders(template.texts(), template.patterns)
    problems.finish()
    for k, pool in enumerate(config.pool):
        for j, device in enumerate(pool.device):
            with problems.attempt():
                _check_device(document, ("pool", k, "device", j), device, config)
        with problems.attempt():
            _check_unique(document, ("pool", k, "device"), [device.name for device in pool.device])
    with problems.attempt():
        _check_unique(document, ("pool",), [pool.name for pool in config.pool])
    if config.links is not None:
        for k, link in enumerate(config.links.link):
            if bool(link.interface) == bool(link.command):
                with problems.attempt():
                    raise document.error(("links", "link", k), "needs either an interface or a command", "set one of the two")
        with problems.attempt():
            _check_unique(document, ("links", "link"), [link.name for link in config.links.link])
    problems.finish()
    return config


def _check_unique(document: Document, path: tuple[str | int, ...], names: list[str]) -> None:
    for k, name in enumerate(names):
        if name in names[:k]:
            raise document.error((*path, k, "name"), f"duplicate name '{name}'", "use unique names")


def _check_device(document: Document, path: tuple[str | int, ...], device: DeviceSection, file: NodeAgentFile) -> None:
    """Check that the template exists and uses only attributes and capacities of the device."""
    if len(device.attributes) + len(device.capacity) >= MAX_ATTRIBUTES:
        problem = f"a device can have at most {MAX_ATTRIBUTES - 1} attributes and capacities besides its template"
        raise document.error(path, problem, "remove some")
    if device.template is None:
        return
    if device.template not in file.template:
        raise document.unknown((*path, TEMPLATE), "template", device.template, [*file.template])
    for name in sorted({name for text in file.template[device.template].texts() for name in placeholders(text)}):
        group, _, inner = name.partition(".")
        has: dict[str, object] = {"attribute": {**device.attributes}, "capacity": {**device.capacity}}
        if group in has and inner not in has[group]:  # type: ignore[operator]
            raise document.error(
                path,
                f"template '{device.template}' uses {{{name}}}, which the device does not have",
                f"add the {group} to the device",
            )
