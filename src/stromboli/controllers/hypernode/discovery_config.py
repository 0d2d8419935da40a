"""Which sources discover HyperNodes, from the controllers' ConfigMap (spec 06 10.1).

An entry or a type that is wrong is left out and named in `problems`; as long as a source has such a problem, none of
its HyperNodes is deleted. `BadConfig` says that the text as a whole cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stromboli.api import go_scalars, names
from stromboli.api.errors import quoted
from stromboli.api.manifests.yaml_lines import YamlError, plain, read_yaml
from stromboli.api.name_rules import dns_subdomain_errors, qualified_name_errors

KEY = "volcano-controller.conf"
"""Of the ConfigMap's data."""
LABEL, UFM = names.TOPOLOGY_SOURCE_LABEL, "ufm"
SOURCES = (LABEL, UFM)

DEFAULT_INTERVAL = 3600.0
"""Seconds between two requests to UFM."""
SHORTEST_INTERVAL = 10.0
LONGEST_INTERVAL = 30 * 86400.0
MAX_TEXT = 64 * 1024
"""Characters of the configuration."""
MAX_TYPES = 32
MAX_TIERS = 16
"""Of a type."""
MAX_TYPE_NAME = 20
"""Bytes of the name of a type, as in Volcano."""


class BadConfig(Exception):
    """The configuration cannot be read; the text is for the user."""


class _Wrong(ValueError):
    """What is wrong with a source."""


@dataclass(frozen=True, slots=True)
class TopologyType:
    """A way in which nodes are connected, such as that of one kind of accelerator."""

    name: str
    tiers: tuple[str, ...]
    """The label of nodes for each tier, the lowest first."""

    def prefix(self, tier: int) -> str:
        """What names of HyperNodes of a tier begin with."""
        return f"hypernode-{''.join(map(_name_character, self.name))}-tier{tier}-"


@dataclass(frozen=True, slots=True)
class LabelSource:
    """HyperNodes from labels of nodes."""

    types: tuple[TopologyType, ...]
    complete: bool = True
    """Whether no type was left out; else nothing is deleted."""


@dataclass(frozen=True, slots=True)
class UfmSource:
    """HyperNodes from NVIDIA's Unified Fabric Manager."""

    endpoint: str
    secret_name: str
    secret_namespace: str
    interval: float = DEFAULT_INTERVAL
    verify: bool = True
    """Whether the server's certificate is verified."""


@dataclass(frozen=True, slots=True)
class DiscoveryConfig:
    """The sources that are enabled."""

    label: LabelSource | None = None
    ufm: UfmSource | None = None
    problems: tuple[str, ...] = ()


def config_map_place(environment: Mapping[str, str]) -> tuple[str, str]:
    """Namespace and name of the ConfigMap, from the variables that Volcano's chart sets."""
    release = environment.get("HELM_RELEASE_NAME") or "volcano"
    return environment.get("KUBE_POD_NAMESPACE") or names.VOLCANO_NAMESPACE, f"{release}-controller-configmap"


def read_config(data: Mapping[str, str], namespace: str) -> DiscoveryConfig:
    """What a ConfigMap says; Secrets without a namespace are in that of the ConfigMap."""
    if KEY not in data:
        raise BadConfig(f"there is no key {KEY} in the data of the ConfigMap")
    text = data[KEY]
    if len(text) > MAX_TEXT:
        raise BadConfig(f"{KEY}: longer than {MAX_TEXT} characters")
    try:
        document = read_yaml(text)
    except YamlError as error:
        raise BadConfig(f"{KEY}: line {error.line}: {error}") from None
    root: Any = plain(document.root)
    if not isinstance(root, dict | None):
        raise BadConfig(f"{KEY}: needs a mapping with the key networkTopologyDiscovery")
    entries = (root or {}).get("networkTopologyDiscovery")
    if not isinstance(entries, list | None):
        raise BadConfig(f"{KEY}: networkTopologyDiscovery: needs a list of sources")
    problems = [f"line {line}: {problem}" for line, problem in document.problems]
    return _Reader(namespace, problems).read(entries or [])


class _Reader:
    """Reads the sources, and collects what is wrong with them."""

    def __init__(self, namespace: str, problems: list[str]) -> None:
        self._namespace = namespace
        self._ambiguous = bool(problems)
        """Whether a key, perhaps a type, is there twice, so that the reader had to choose."""
        self._problems = problems

    def read(self, entries: list[Any]) -> DiscoveryConfig:
        enabled: dict[str, Mapping[str, Any]] = {}
        for number, entry in enumerate(entries, 1):
            if not isinstance(entry, dict) or not isinstance(entry.get("enabled", False), bool):
                self._problem(f"entry {number}", "needs source, enabled (true or false) and config")
            elif entry.get("enabled"):
                self._enable(enabled, entry.get("source"), entry)
        label, ufm = enabled.get(LABEL), enabled.get(UFM)
        return DiscoveryConfig(
            self._label(_mapping(label.get("config"))) if label is not None else None,
            self._ufm(ufm) if ufm is not None else None,
            tuple(self._problems),
        )

    def _enable(
        self, enabled: dict[str, Mapping[str, Any]], source: object, entry: Mapping[str, Any]
    ) -> None:
        if source not in SOURCES:
            self._problem(f"source {quoted(source)}", f"not supported; there are {' and '.join(SOURCES)}")
        elif source in enabled:
            self._problem(f"source {source}", "enabled twice; the first entry counts")
        else:
            enabled[str(source)] = entry

    def _problem(self, where: str, what: str) -> None:
        self._problems.append(f"{where}: {what}")

    # -- labels

    def _label(self, config: Mapping[str, Any]) -> LabelSource:
        before = len(self._problems)
        given = config.get("networkTopologyTypes")
        if not isinstance(given, dict):
            self._problem("source label", "config.networkTopologyTypes: needs a mapping of types to labels")
            return LabelSource((), complete=False)
        types: list[TopologyType] = []
        for name, labels in given.items():
            if len(types) >= MAX_TYPES:
                self._problem("source label", f"more than {MAX_TYPES} types; those after them are left out")
                break
            problem = self._add_type(types, name, labels)
            if problem:
                self._problem(f"type {quoted(name)}", f"left out: {problem}")
        return LabelSource(tuple(types), complete=not self._ambiguous and len(self._problems) == before)

    def _add_type(self, types: list[TopologyType], name: str, labels: object) -> str:
        """Why a type cannot be used; empty if it was added."""
        if not 0 < len(name.encode(errors="replace")) <= MAX_TYPE_NAME:
            return f"its name needs 1 to {MAX_TYPE_NAME} bytes"
        keys = [entry.get("nodeLabel") if isinstance(entry, dict) else None for entry in _list(labels)]
        if problem := next(_label_problems(keys), ""):
            return problem
        # the last label stands for the node itself
        added = TopologyType(name, tuple(str(key) for key in reversed(keys[:-1])))
        if dns_subdomain_errors(f"{added.prefix(1)}x"):
            return f"HyperNodes cannot be named {added.prefix(1)}...; use letters, digits and single dashes"
        for other in types:
            for tier, key in enumerate(added.tiers, 1):
                if key in other.tiers and other.tiers.index(key) + 1 != tier:
                    used = other.tiers.index(key) + 1
                    return f"the label {key} is tier {tier} here and tier {used} in type {other.name}"
        types.append(added)
        return ""

    # -- UFM

    def _ufm(self, entry: Mapping[str, Any]) -> UfmSource | None:
        try:
            return self._ufm_source(entry)
        except _Wrong as error:
            self._problem("source ufm", str(error))
            return None

    def _ufm_source(self, entry: Mapping[str, Any]) -> UfmSource:
        config = _mapping(entry.get("config"))
        secret = _mapping(_mapping(entry.get("credentials")).get("secretRef"))
        endpoint, name = config.get("endpoint"), secret.get("name")
        verify, namespace = config.get("insecureSkipVerify", False), secret.get("namespace")
        if not isinstance(endpoint, str) or not endpoint:
            raise _Wrong("config.endpoint: needs an address such as https://ufm.example.com")
        if not isinstance(verify, bool):
            raise _Wrong("config.insecureSkipVerify: needs true or false")
        if not isinstance(name, str) or not name or not isinstance(namespace, str | None):
            raise _Wrong("credentials.secretRef: needs name and namespace of a Secret")
        interval = _seconds(entry.get("interval"))
        if interval is None:
            raise _Wrong(f"interval: {quoted(str(entry['interval']))} is no duration such as 10m")
        if not endpoint.startswith(("http://", "https://")):
            endpoint = f"https://{endpoint}"
        return UfmSource(endpoint.rstrip("/"), name, namespace or self._namespace, interval, not verify)


def _label_problems(keys: list[Any]) -> Iterator[str]:
    """What is wrong with the labels of a type."""
    if len(keys) < 2:
        yield "needs labels from the highest tier down; the last one is that of the node, kubernetes.io/hostname"
    if len(keys) > MAX_TIERS + 1:
        yield f"more than {MAX_TIERS} tiers"
    for key in keys:
        if not isinstance(key, str) or qualified_name_errors(key):
            yield f"nodeLabel: {quoted(str(key))} is no key of a label"
        elif key == names.TOPOLOGY_SOURCE:
            yield f"nodeLabel: {key} says where HyperNodes come from"
        elif keys.count(key) > 1:
            yield f"the label {key} is there twice"


def _seconds(value: object) -> float | None:
    """An interval within its bounds; a number is nanoseconds, as in Go, and what is not positive the default."""
    if isinstance(value, str):
        seconds = go_scalars.duration(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        seconds = value / 1e9
    else:
        seconds = DEFAULT_INTERVAL if value is None else None
    if seconds is None:
        return None
    return min(max(seconds, SHORTEST_INTERVAL), LONGEST_INTERVAL) if seconds > 0 else DEFAULT_INTERVAL


def _name_character(character: str) -> str:
    """As in Volcano, but for letters and digits outside of ASCII, which no name may have."""
    if character.isascii() and (character.isalnum() or character in ".-"):
        return character.lower()
    return "-"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
