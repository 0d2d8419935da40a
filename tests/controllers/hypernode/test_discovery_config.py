"""The configuration of discovery: Volcano's file, and one mistake costs one entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.manifests.yaml_reader import documents
from stromboli.controllers.hypernode.discovery_config import (
    DEFAULT_INTERVAL,
    KEY,
    LONGEST_INTERVAL,
    MAX_TEXT,
    MAX_TIERS,
    MAX_TYPES,
    SHORTEST_INTERVAL,
    BadConfig,
    DiscoveryConfig,
    TopologyType,
    UfmSource,
    config_map_place,
    read_config,
)

ROOT = Path(__file__).parents[3]
VOLCANO_EXAMPLE = """
networkTopologyDiscovery:
  - source: ufm
    enabled: true
    interval: 10m
    credentials:
      secretRef: {name: ufm-credentials, namespace: secrets}
    config:
      endpoint: https://ufm-server:8080
      insecureSkipVerify: true
  - source: roce
    enabled: false
    interval: 15m
    config: {endpoint: "https://roce-server:9090"}
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        topologyA2:
          - nodeLabel: "volcano.sh/tor"
          - nodeLabel: "kubernetes.io/hostname"
        topologyA3:
          - nodeLabel: "volcano.sh/hypercluster"
          - nodeLabel: "volcano.sh/hypernode"
          - nodeLabel: "kubernetes.io/hostname"
"""


def read(text: str) -> DiscoveryConfig:
    return read_config({KEY: text}, "volcano-system")


def read_types(types: str) -> DiscoveryConfig:
    """A label source with types in flow style: `{a: [x, host]}`, labels as they are."""
    return read(
        "networkTopologyDiscovery: [{source: label, enabled: true, config: {networkTopologyTypes: "
        + types
        + "}}]"
    )


def labels(*keys: str) -> str:
    return "[" + ", ".join(f'{{nodeLabel: "{key}"}}' for key in keys) + "]"


def read_ufm(**entry: str) -> DiscoveryConfig:
    fields = {
        "credentials": "{secretRef: {name: secret}}",
        "config": "{endpoint: ufm.example.com}",
        **entry,
    }
    text = ", ".join(f"{key}: {value}" for key, value in fields.items() if value)
    return read("networkTopologyDiscovery: [{source: ufm, enabled: true, " + text + "}]")


def test_volcanos_example_is_read_as_volcano_reads_it() -> None:
    config = read(VOLCANO_EXAMPLE)
    assert config.problems == ()
    assert config.ufm == UfmSource(
        "https://ufm-server:8080", "ufm-credentials", "secrets", 600.0, verify=False
    )
    assert config.label is not None
    assert config.label.complete
    assert config.label.types == (
        TopologyType("topologyA2", ("volcano.sh/tor",)),
        TopologyType("topologyA3", ("volcano.sh/hypernode", "volcano.sh/hypercluster")),
    )


def test_the_example_of_the_documentation_is_sound() -> None:
    page = (ROOT / "docs" / "controllers.md").read_text()
    (config_map,) = documents(
        page.partition("<!-- file: discovery.yaml -->\n```yaml\n")[2].partition("```")[0]
    )
    meta = config_map["metadata"]
    assert (meta["namespace"], meta["name"]) == config_map_place({})
    config = read_config(config_map["data"], meta["namespace"])
    assert config.problems == ()
    assert config.label is not None
    assert config.label.types == (TopologyType("gpu", ("example.com/leaf", "example.com/spine")),)


def test_the_place_of_the_configuration_follows_volcanos_variables() -> None:
    assert config_map_place({}) == ("volcano-system", "volcano-controller-configmap")
    chart = {"KUBE_POD_NAMESPACE": "batch", "HELM_RELEASE_NAME": "vc"}
    assert config_map_place(chart) == ("batch", "vc-controller-configmap")


@pytest.mark.parametrize(
    "text", ["", "other: 1", "networkTopologyDiscovery:", "networkTopologyDiscovery: []"]
)
def test_no_sources_are_a_configuration_too(text: str) -> None:
    assert read(text) == DiscoveryConfig()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "line [0-9]+: this is not YAML"),
        ("- a", "needs a mapping"),
        ("networkTopologyDiscovery: {}", "needs a list of sources"),
        ("x" * (MAX_TEXT + 1), f"longer than {MAX_TEXT} characters"),
        ("a: &a [*a]", "an alias refers to itself"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_as_a_whole(text: str, problem: str) -> None:
    with pytest.raises(BadConfig, match=f"{KEY}: .*{problem}"):
        read(text)


def test_a_config_map_without_the_key_says_so() -> None:
    with pytest.raises(BadConfig, match=f"no key {KEY}"):
        read_config({"other": ""}, "ns")


def test_one_bad_entry_leaves_the_others_in_force() -> None:
    """Volcano starts no source that comes after one that it does not support."""
    config = read(
        """
        networkTopologyDiscovery:
        - nonsense
        - {source: roce, enabled: true}
        - {source: ufm, enabled: "yes"}
        - {source: ufm, enabled: true, config: {endpoint: 7}}
        - {source: label, enabled: true, config: {networkTopologyTypes: {}}}
        - {source: label, enabled: true}
        """
    )
    assert config.label is not None
    assert config.label.complete
    assert config.ufm is None
    assert config.problems == (
        "entry 1: needs source, enabled (true or false) and config",
        'source "roce": not supported; there are label and ufm',
        "entry 3: needs source, enabled (true or false) and config",
        "source label: enabled twice; the first entry counts",
        "source ufm: config.endpoint: needs an address such as https://ufm.example.com",
    )


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        (f"{{{'a' * 21}: {labels('x', 'host')}}}", "1 to 20 bytes"),
        (f"{{a: {labels('x', 'x', 'host')}}}", "the label x is there twice"),
        (f"{{a: {labels('rack')}}}", "the last one is that of the node"),
        ("{a: nonsense}", "the last one is that of the node"),
        (f"{{a: {labels('no label!', 'host')}}}", "is no key of a label"),
        (f"{{a: {labels('volcano.sh/network-topology-source', 'host')}}}", "where HyperNodes come from"),
        (f"{{a: {labels(*(f'l{n}' for n in range(MAX_TIERS + 2)))}}}", f"more than {MAX_TIERS} tiers"),
        (f'{{".a": {labels("x", "host")}}}', "cannot be named"),
    ],
)
def test_a_bad_type_is_left_out_and_nothing_is_deleted_meanwhile(types: str, problem: str) -> None:
    good = f"good: {labels('rack', 'kubernetes.io/hostname')}"
    config = read_types(types[:-1] + f", {good}}}")
    assert config.label is not None
    assert [type_.name for type_ in config.label.types] == ["good"]
    assert not config.label.complete
    assert len(config.problems) == 1
    assert problem in config.problems[0]


def test_a_label_has_one_tier_whatever_types_share_it() -> None:
    """Else a HyperNode would have nodes and HyperNodes by chance, as it has in Volcano."""
    config = read_types(
        f"{{a: {labels('spine', 'tor', 'host')}, b: {labels('spine', 'nvl', 'host')}, c: {labels('spine', 'host')}}}"
    )
    assert config.label is not None
    assert [type_.name for type_ in config.label.types] == ["a", "b"]
    assert config.problems == ('type "c": left out: the label spine is tier 1 here and tier 2 in type a',)


def test_a_type_may_be_called_by_a_number() -> None:
    config = read_types(f"{{72: {labels('spine', 'host')}}}")
    assert config.problems == ()
    assert config.label is not None
    assert config.label.types == (TopologyType("72", ("spine",)),)


def test_a_type_that_is_there_twice_is_told_and_costs_no_hyper_node() -> None:
    config = read_types(f"{{a: {labels('spine', 'host')}, a: {labels('leaf', 'host')}}}")
    assert config.problems == ('line 1: "a" stands here twice, first in line 1',)
    assert config.label is not None
    assert not config.label.complete


def test_types_are_bounded() -> None:
    many = ", ".join(f"t{n}: {labels(f'l{n}', 'host')}" for n in range(MAX_TYPES + 5))
    config = read_types(f"{{{many}}}")
    assert config.label is not None
    assert len(config.label.types) == MAX_TYPES
    assert config.problems == (f"source label: more than {MAX_TYPES} types; those after them are left out",)


def test_names_of_types_become_part_of_names_of_objects() -> None:
    assert TopologyType("NVL_72.b", ()).prefix(2) == "hypernode-nvl-72.b-tier2-"
    assert TopologyType("größe", ()).prefix(1) == "hypernode-gr--e-tier1-"


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        ("", DEFAULT_INTERVAL),
        ("0s", DEFAULT_INTERVAL),
        ("-1m", DEFAULT_INTERVAL),
        ("5m", 300.0),
        ("1ms", SHORTEST_INTERVAL),
        ("600", SHORTEST_INTERVAL),
        ("90000000000", 90.0),
        ("100000h", LONGEST_INTERVAL),
        (str(2**63), LONGEST_INTERVAL),
    ],
)
def test_intervals_are_gos_and_bounded(interval: str, seconds: float) -> None:
    config = read_ufm(interval=interval)
    assert config.ufm == UfmSource("https://ufm.example.com", "secret", "volcano-system", seconds)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("interval", "soon", 'interval: "soon" is no duration'),
        ("interval", "true", "is no duration"),
        ("interval", "-1" + "0" * 400, "is no duration"),
        ("credentials", "", "credentials.secretRef: needs name"),
        ("credentials", "{secretRef: {name: [a]}}", "credentials.secretRef: needs name"),
        ("config", '{endpoint: ""}', "config.endpoint: needs an address"),
        ("config", "{endpoint: a, insecureSkipVerify: 1}", "insecureSkipVerify: needs true or false"),
    ],
)
def test_what_ufm_lacks_is_named(field: str, value: str, problem: str) -> None:
    config = read_ufm(**{field: value})
    assert config.ufm is None
    assert len(config.problems) == 1
    assert problem in config.problems[0]


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {"source": st.sampled_from(["label", "ufm"]) | anything, "enabled": st.just(True) | anything},
    optional={
        "interval": anything,
        "credentials": anything | st.fixed_dictionaries({"secretRef": anything}),
        "config": anything
        | st.fixed_dictionaries({"endpoint": anything})
        | st.fixed_dictionaries({"networkTopologyTypes": st.dictionaries(st.text(max_size=8), anything)}),
    },
)


@given(st.lists(entries, max_size=4) | anything)
@example([{"source": ["label"], "enabled": True}])
def test_no_configuration_breaks_the_reader(discovery: Any) -> None:
    try:
        config = read(json.dumps({"networkTopologyDiscovery": discovery}))
    except BadConfig as error:
        assert KEY in str(error)
    else:
        assert all(len(problem) < 300 for problem in config.problems)
