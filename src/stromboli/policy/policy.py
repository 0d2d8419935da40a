"""The policy: which actions run, which plugins advise them and how, read from Volcano's configuration file.

Strict by default: everything that Volcano silently ignores is refused, with its line and the nearest valid name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stromboli.api.errors import quoted
from stromboli.api.manifests.yaml_lines import MAX_BYTES, Node, YamlError, plain, read_yaml
from stromboli.policy.arguments import declared, kind_of, parse_arguments
from stromboli.policy.policy_problems import Problem, Severity, nearest, suggestion
from stromboli.policy.presets import DEFAULT

__all__ = ["Extensions", "PluginEntry", "Policy", "PolicyError", "default_policy", "load_policy"]


# -- what a policy may name


class Configurable(Protocol):
    """An action or a plugin, as far as the policy needs it."""

    @property
    def Arguments(self) -> type[Any]:
        """The dataclass of its typed arguments."""
        ...


class ConfigurableAction(Configurable, Protocol):
    """An action, as far as the policy needs it."""

    @property
    def evicts_by(self) -> str:
        """The extension point at which plugins vote on its victims; empty if it evicts no pods."""
        ...

    @property
    def for_waiting(self) -> bool:
        """Whether it does nothing unless a job is pending."""
        ...


class Extensions(Protocol):
    """The installed actions and plugins by name, as far as the policy needs them (`engine.catalog.Catalog`)."""

    @property
    def actions(self) -> Mapping[str, ConfigurableAction]:
        """The actions that `actions` may list."""
        ...

    @property
    def plugins(self) -> Mapping[str, Configurable]:
        """The plugins that a tier may list."""
        ...

    @property
    def switches(self) -> dict[str, bool]:
        """Every switch that a plugin entry may have, with its default."""
        ...


# -- reading, section by section, collecting every problem


SECTIONS = ("actions", "tiers", "configurations", "metrics")
_WHOLE_CONFIG_MAP = (
    'this is a whole ConfigMap: the policy is the text under "volcano-scheduler.conf" in its data; get it with '
    "kubectl get configmap NAME -o jsonpath='{.data.volcano-scheduler\\.conf}'"
)
METRICS = (
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.username",
    "elasticsearch.password",
    "elasticsearch.hostnameFieldName",
)
METRICS_TYPES = ("", "prometheus", "prometheus_adaptor", "elasticsearch", "file")


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin as one tier lists it."""

    name: str
    arguments: Any
    switches: dict[str, bool]


@dataclass(slots=True)
class PolicyReader:
    """The content of a configuration file, and every problem in it."""

    catalog: Extensions
    problems: list[Problem] = field(default_factory=list)
    actions: tuple[str, ...] = ()
    tiers: tuple[tuple[PluginEntry, ...], ...] = ()
    configurations: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    plugins_listed: bool = False
    """Whether a problem already lists the installed plugins."""
    known_switches: dict[str, bool] = field(init=False)
    """Every switch that a plugin entry may have, with its default."""

    def __post_init__(self) -> None:
        self.known_switches = self.catalog.switches

    @classmethod
    def of(cls, text: str | bytes, catalog: Extensions) -> "PolicyReader":
        """Read a whole file; raises `YamlError` if it is not YAML."""
        document = read_yaml(_decoded(text))
        reader = cls(catalog, [Problem(line, message) for line, message in document.problems])
        if isinstance(document.root.value, dict) and {"kind", "data"} <= document.root.value.keys():
            reader.fatal(document.root, _WHOLE_CONFIG_MAP)
            return reader
        sections = reader.mapping(document.root, "the file", SECTIONS, "key")
        reader.read_actions(sections.get("actions", Node(None)))
        reader.read_tiers(sections.get("tiers", Node(None)))
        reader.read_configurations(sections.get("configurations", Node(None)))
        reader.read_metrics(sections.get("metrics", Node(None)))
        return reader

    # -- sections

    def read_actions(self, node: Node) -> None:
        """A comma-separated list of names, in the order of execution."""
        if not isinstance(node.value, str | None):
            return self.fatal(node, f'actions: needs a string such as "enqueue, allocate", got {_got(node)}')
        names = []
        for raw in (node.value or "").split(","):
            name = raw.strip()
            if name in self.catalog.actions:
                names.append(name)
            else:
                self.fatal(node, _no_such_action(name, self.catalog.actions))
        self.actions = tuple(names)
        for message in order_warnings(names, self.catalog):
            self.warn(node, f"actions: {message}")

    def read_tiers(self, node: Node) -> None:
        """A list of tiers, each with a list of plugins."""
        seen: dict[str, int] = {}
        tiers = []
        for tier in self.items(node, "tiers"):
            plugins = self.mapping(tier, "a tier", ("plugins",), "key").get("plugins", Node(None))
            entries = [self.plugin(item, seen) for item in self.items(plugins, "plugins")]
            tiers.append(tuple(entry for entry in entries if entry))
            self.check_hierarchy(tier, tiers[-1])
        self.tiers = tuple(tiers)

    def read_configurations(self, node: Node) -> None:
        """The arguments of actions; the first entry of an action counts, other actions have defaults."""
        for item in self.items(node, "configurations"):
            entry = self.mapping(item, "a configuration", ("name", "arguments"), "key")
            name = self.name(item, entry, "configuration")
            if name is None:
                continue
            if name not in self.catalog.actions:
                self.wrong(item, f"unknown action {quoted(name)}{suggestion(name, self.catalog.actions)}")
            elif name in self.configurations:
                self.wrong(item, f"a second configuration of {name} is ignored: the first one counts")
            else:
                kind = self.catalog.actions[name].Arguments
                self.configurations[name] = self.arguments(kind, entry, f"action {name}")
        for name, action in self.catalog.actions.items():
            self.configurations.setdefault(name, action.Arguments())

    def read_metrics(self, node: Node) -> None:
        """The source of node usage: texts by key."""
        for key, entry in self.mapping(node, "metrics", None, "key").items():
            if key not in METRICS:
                self.wrong(entry, f"unknown metrics key {quoted(key)}{suggestion(key, METRICS)}")
            if isinstance(entry.value, dict | list | None):
                self.wrong(entry, f"metrics {key}: needs a string, got {_got(entry)}")
            else:
                text = str(entry.value)
                self.metrics[key] = text.lower() if isinstance(entry.value, bool) else text
                if key == "type" and text not in METRICS_TYPES:
                    self.wrong(
                        entry, f"metrics: unknown type {quoted(text)}{suggestion(text, METRICS_TYPES)}"
                    )

    # -- plugins

    def plugin(self, node: Node, seen: dict[str, int]) -> PluginEntry | None:
        """One entry of a tier; None if the plugin is unknown."""
        entry = self.mapping(node, "a plugin", None, "key")
        name = self.name(node, entry, "plugin")
        if name is None:
            return None
        if name in seen:
            self.warn(node, f"plugin {name} is listed twice, first in line {seen[name]}")
        seen.setdefault(name, node.line)
        switches = self.switches(name, entry)
        if name in self.catalog.plugins:
            arguments = self.arguments(self.catalog.plugins[name].Arguments, entry, f"plugin {name}")
            return PluginEntry(name, arguments, switches)
        self.wrong(node, f"unknown plugin {quoted(name)}; {self.plugin_remedy(name)}")
        return None

    def plugin_remedy(self, name: str) -> str:
        """The remedy for an unknown plugin; the installed ones are listed once per file."""
        near = nearest(name, self.catalog.plugins)
        if near:
            return f'did you mean "{near}"?'
        known = "" if self.plugins_listed else f"known: {', '.join(sorted(self.catalog.plugins))}; "
        self.plugins_listed = True
        return f"{known}plugins of your own are loaded by --plugins-dir"

    def switches(self, name: str, entry: dict[str, Node]) -> dict[str, bool]:
        """Every switch, as given or by default."""
        defaults = self.known_switches
        switches = dict(defaults)
        for key, node in entry.items():
            if key in ("name", "arguments"):
                continue
            if key not in defaults:
                self.wrong(node, f"plugin {name}: unknown key {quoted(key)}{self.meant(name, key)}")
            elif isinstance(node.value, bool):
                switches[key] = node.value
            elif node.value is not None:
                self.wrong(node, f"plugin {name}: {key}: needs a boolean, got {_got(node)}")
        return switches

    def meant(self, name: str, key: str) -> str:
        """The probably intended key of a plugin for an unknown one, as the end of a sentence."""
        switches = self.known_switches
        plugin = self.catalog.plugins.get(name)
        if plugin is not None and key in {argument.key for argument in declared(plugin.Arguments)}:
            return '; it is an argument: put it under "arguments"'
        enable = key.replace("disable", "enable", 1)
        if key.startswith("disable") and enable in switches:
            return f"; write {enable}: false"
        return suggestion(key, ["name", "arguments", *switches])

    def check_hierarchy(self, node: Node, tier: tuple[PluginEntry, ...]) -> None:
        """Refuse two plugins that both divide the cluster among queues."""
        hierarchy = any(entry.name == "drf" and entry.switches["enableHierarchy"] for entry in tier)
        if hierarchy and any(entry.name == "proportion" for entry in tier):
            self.fatal(node, "proportion and drf with hierarchy enabled conflicts; leave one of them out")

    def arguments(self, kind: type[Any], entry: dict[str, Node], owner: str) -> Any:
        """The arguments of a plugin or an action."""
        node = entry.get("arguments", Node(None))
        parsed, problems = parse_arguments(kind, Node({}) if node.value is None else node)
        self.problems += [Problem(p.line, f"{owner}: {p.message}", p.severity) for p in problems]
        return parsed

    # -- shapes

    def mapping(self, node: Node, what: str, known: tuple[str, ...] | None, kind: str) -> dict[str, Node]:
        """The entries of a mapping that may only have `known` keys; null counts as empty."""
        if not isinstance(node.value, dict):
            if node.value is not None:
                self.fatal(node, f"{what}: needs a mapping, got {_got(node)}")
            return {}
        for key, entry in node.value.items():
            if known is not None and key not in known:
                self.wrong(entry, f"unknown {kind} {quoted(key)}{suggestion(key, known)}")
        return node.value

    def items(self, node: Node, what: str) -> list[Node]:
        """The items of a list; null counts as empty."""
        if isinstance(node.value, list):
            return node.value
        if node.value is not None:
            self.fatal(node, f"{what}: needs a list, got {_got(node)}")
        return []

    def name(self, node: Node, entry: dict[str, Node], what: str) -> str | None:
        """The name that an entry of a list must have."""
        name = entry.get("name", Node(None)).value
        if isinstance(name, str) and name:
            return name
        self.wrong(node, f"this {what} has no name")
        return None

    def fatal(self, node: Node, message: str) -> None:
        """Always refuse, as Volcano does."""
        self.problems.append(Problem(node.line, message, Severity.FATAL))

    def wrong(self, node: Node, message: str) -> None:
        """Refuse, unless the user wants Volcano's leniency."""
        self.problems.append(Problem(node.line, message))

    def warn(self, node: Node, message: str) -> None:
        """Warn: allowed, but probably not intended."""
        self.problems.append(Problem(node.line, message, Severity.WARNING))


def _decoded(text: str | bytes) -> str:
    """The text, if it is UTF-8 and not too large."""
    try:
        raw = text if isinstance(text, bytes) else text.encode()
        decoded = raw.decode("utf-8-sig")
    except UnicodeError:
        raise YamlError(0, "this is not UTF-8 text; save the file as UTF-8") from None
    if len(raw) > MAX_BYTES:
        raise YamlError(0, f"the file has more than {MAX_BYTES >> 20} MiB; a policy takes a few kilobytes")
    return decoded


def _got(node: Node) -> str:
    return kind_of(plain(node))


def _no_such_action(name: str, known: Iterable[str]) -> str:
    """Volcano's message, with the remedy."""
    if not name:
        return 'failed to find Action: "actions" is missing, empty, or has a comma too many'
    return f"failed to find Action {name[:80]}{suggestion(name, known)}"


# -- warnings about orders of actions that are allowed, as in Volcano, but make little sense


def order_warnings(actions: Sequence[str], catalog: Extensions) -> list[str]:
    """Warnings about probable mistakes in the order of actions."""
    warnings = [
        f"{name} is listed {actions.count(name)} times and will run as often"
        for name in dict.fromkeys(actions)
        if actions.count(name) > 1
    ]
    if "enqueue" in actions and "allocate" in actions and _before(actions, "allocate", "enqueue"):
        warnings.append("allocate runs before enqueue: a new job waits one cycle longer than it has to")
    if "allocate" in actions:
        for name in dict.fromkeys(actions[: actions.index("allocate")]):
            if effect := _effect_before_allocate(name, catalog):
                warnings.append(f"{name} runs before allocate: {effect}")
    return warnings


def _effect_before_allocate(name: str, catalog: Extensions) -> str:
    """What is wrong with an action that runs before allocate; empty if nothing is."""
    if name == "backfill":
        return "best-effort pods take nodes before jobs with requests"
    action = catalog.actions[name]
    evicts_for_jobs = action.for_waiting and action.evicts_by
    return "pods are evicted for jobs that may fit into free capacity" if evicts_for_jobs else ""


def _before(actions: Sequence[str], first: str, second: str) -> bool:
    return actions.index(first) < actions.index(second)


# -- the policy


@dataclass(frozen=True, slots=True)
class Policy:
    """A validated configuration file: known names, parsed arguments, complete switches."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginEntry, ...], ...]
    configurations: Mapping[str, Any]
    """The arguments of every action of the catalog, given or default."""
    metrics: Mapping[str, str]
    warnings: tuple[str, ...]
    """Warnings, as `FILE:LINE: message`."""
    source: str
    source_name: str

    @property
    def plugins(self) -> tuple[PluginEntry, ...]:
        """Every plugin entry, tier after tier."""
        return tuple(entry for tier in self.tiers for entry in tier)


class PolicyError(ValueError):
    """A configuration file that is refused; `errors` are all its errors as `FILE:LINE: message`."""

    def __init__(self, errors: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
        self.errors = errors
        self.warnings = warnings
        more = [f"... and {len(errors) - 20} more"] if len(errors) > 20 else []
        super().__init__("\n".join([*errors[:20], *more]))


def load_policy(
    text: str | bytes, catalog: Extensions, source_name: str = "policy", lenient: bool = False
) -> Policy:
    """Read a configuration file; `lenient` ignores with a warning what Volcano ignores."""
    try:
        reader = PolicyReader.of(text, catalog)
    except YamlError as error:
        problem = Problem(error.line, str(error), Severity.FATAL)
        raise PolicyError((problem.at(source_name),)) from None
    refused = {Severity.FATAL} if lenient else {Severity.FATAL, Severity.ERROR}
    problems = sorted(reader.problems, key=lambda problem: problem.line)
    warnings = _listed([p for p in problems if p.severity not in refused], source_name)
    if errors := _listed([p for p in problems if p.severity in refused], source_name):
        raise PolicyError(errors, warnings)
    return Policy(
        actions=reader.actions,
        tiers=reader.tiers,
        configurations=reader.configurations,
        metrics=reader.metrics,
        warnings=warnings,
        source=text if isinstance(text, str) else text.decode("utf-8-sig"),
        source_name=source_name,
    )


def default_policy(catalog: Extensions) -> Policy:
    """The policy without a configuration file: Volcano's built-in one."""
    return load_policy(DEFAULT, catalog, "built-in policy")


def _listed(problems: list[Problem], source_name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(problem.at(source_name) for problem in problems))
