"""Volcano's configuration file as is; a wrong one is refused with file, line and the nearest right name."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.engine.catalog import Action, Catalog, action
from stromboli.engine.plugin import SWITCHES, Plugin
from stromboli.engine.points import every, point
from stromboli.extensions import load_catalog
from stromboli.policy.arguments import arg
from stromboli.policy.policy import Policy, PolicyError, default_policy, load_policy
from stromboli.policy.policy_file import OverridablePolicy, PolicyFile, PolicyReading
from stromboli.policy.policy_problems import suggestion
from stromboli.policy.presets import PRESETS, preset


@dataclass(frozen=True, slots=True)
class BinpackArguments:
    weight: int = arg("binpack.weight", 1, "How much it counts.")


@dataclass(frozen=True, slots=True)
class AllocateArguments:
    cache: bool = arg("predicateErrorCacheEnable", True, "Whether.", aliases=["enablePredicateErrorCache"])


def plugin(name: str, arguments: type | None = None) -> type[Plugin]:
    return type(name, (Plugin,), {"name": name} | ({"Arguments": arguments} if arguments else {}))


def step(name: str) -> Action:
    return action(name)(lambda session: None)


PLUGINS = ["priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion", "nodeorder"]
CATALOG = Catalog(
    {name: step(name) for name in ("enqueue", "backfill")}
    | {"allocate": action("allocate", AllocateArguments)(lambda session: None)},
    {name: plugin(name) for name in PLUGINS} | {"binpack": plugin("binpack", BinpackArguments)},
)
EVICTING = {
    name: action(name, evicts_by=point, for_waiting=True)(lambda session: None)
    for name, point in (("preempt", "preemptable"), ("reclaim", "reclaimable"))
}
WHOLE = Catalog({name: step(name) for name in ("enqueue", "allocate", "backfill")} | EVICTING, {})


def load(text: str, lenient: bool = False) -> Policy:
    return load_policy(text, CATALOG, "conf", lenient)


def errors(text: str, lenient: bool = False) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as caught:
        load(text, lenient)
    return caught.value.errors


def test_a_file_of_volcano_is_read_as_it_is() -> None:
    policy = load("""
actions: "enqueue, allocate,backfill "
tiers:
- plugins:
  - name: gang
    enablePreemptable: no
- plugins:
  - name: binpack
    enableHierarchy: on
    arguments:
      binpack.weight: 5
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: "false"
metrics:
  type: prometheus
  interval: 30s
  tls.insecureSkipVerify: true
""")
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [[entry.name for entry in tier] for tier in policy.tiers] == [["gang"], ["binpack"]]
    gang, binpack = policy.plugins
    assert gang.switches == {**SWITCHES, "enablePreemptable": False}
    assert binpack.switches["enableHierarchy"] is True
    assert binpack.arguments == BinpackArguments(5)
    assert policy.configurations["allocate"] == AllocateArguments(False)
    assert policy.metrics == {"type": "prometheus", "interval": "30s", "tls.insecureSkipVerify": "true"}
    assert policy.warnings == ()


def test_an_action_without_a_configuration_has_its_defaults() -> None:
    assert load("actions: allocate").configurations["allocate"] == AllocateArguments(True)


ONE_PLUGIN = "actions: allocate\ntiers:\n- plugins:\n  - name: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("actions: allocat", 'conf:1: failed to find Action allocat; did you mean "allocate"?'),
        ("actions: 'allocate, alocate'", 'conf:1: failed to find Action alocate; did you mean "allocate"?'),
        ("actions: allocate,", "conf:1: failed to find Action: "),
        ("tiers: []", "conf: failed to find Action: "),
        ("actions: ''", "conf:1: failed to find Action: "),
        ("", "conf: failed to find Action: "),
        ("actions: [allocate]", "conf:1: actions: needs a string"),
        ("actions: allocate\naction: x", 'conf:2: unknown key "action"; did you mean "actions"?'),
        ("actions: allocate\nactions: backfill", 'conf:2: "actions" stands here twice, first in line 1'),
        ("actions: allocate\n---\nactions: allocate", "conf:2: a second YAML document starts here"),
        ("actions: allocate\ntiers: gang", 'conf:2: tiers: needs a list, got the string "gang"'),
        ("actions: allocate\ntiers: [gang]", 'conf:2: a tier: needs a mapping, got the string "gang"'),
        ("actions: allocate\ntiers:\n- plugin: []", 'conf:3: unknown key "plugin"; did you mean "plugins"?'),
        ("actions: allocate\ntiers:\n- plugins:\n  - gang", "conf:4: a plugin: needs a mapping"),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - enableJobOrder: true",
            "conf:4: this plugin has no name",
        ),
        (b"\xff\xfe\x00", "conf: this is not UTF-8 text"),
        ("\ud800", "conf: this is not UTF-8 text"),
        ("a" * (MAX_BYTES + 1), "conf: the file has more than 1 MiB"),
        ("a: [1\nb: 2", "conf:2: this is not YAML"),
        (ONE_PLUGIN + "gnag", 'conf:4: unknown plugin "gnag"; did you mean "gang"?'),
        (
            ONE_PLUGIN + "gang\n    enablePreemtable: true",
            'conf:5: plugin gang: unknown key "enablePreemtable"; did you mean',
        ),
        (
            ONE_PLUGIN + "gang\n    disableJobOrder: true",
            'conf:5: plugin gang: unknown key "disableJobOrder"; write enableJobOrder: false',
        ),
        (
            ONE_PLUGIN + "binpack\n    binpack.weight: 3",
            'conf:5: plugin binpack: unknown key "binpack.weight"; it is an argument: put it under "arguments"',
        ),
        (
            ONE_PLUGIN + "gang\n    enableJobOrder: 'yes'",
            "conf:5: plugin gang: enableJobOrder: needs a boolean",
        ),
        (ONE_PLUGIN + "gang\n    arguments: {a: 1}", 'conf:5: plugin gang: unknown argument "a"'),
        (
            ONE_PLUGIN + "gang\n    arguments: [a]",
            "conf:5: plugin gang: arguments: needs a mapping, got a list",
        ),
        (
            ONE_PLUGIN + "binpack\n    arguments:\n      binpack.wieght: 1",
            'conf:6: plugin binpack: unknown argument "binpack.wieght"; did you mean "binpack.weight"?',
        ),
        (
            ONE_PLUGIN + "binpack\n    arguments:\n      binpack.weight: '1'",
            "conf:6: plugin binpack: binpack.weight: needs an integer",
        ),
        (
            "actions: allocate\nconfigurations:\n- name: alocate",
            'conf:3: unknown action "alocate"; did you mean',
        ),
        (
            "actions: allocate\nconfigurations:\n- name: allocate\n  arguments: {cache: true}",
            'conf:4: action allocate: unknown argument "cache"',
        ),
        ("actions: allocate\nmetrics: {type: []}", "conf:2: metrics type: needs a string, got a list"),
        ("actions: 'allocate", "conf:1: this is not YAML"),
        ("- allocate", "conf:1: the file: needs a mapping, got a list"),
        ("kind: ConfigMap\ndata: {volcano-scheduler.conf: ''}", "conf:1: this is a whole ConfigMap"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line_and_the_way_out(text: str, message: str) -> None:
    assert [error for error in errors(text) if error.startswith(message)], errors(text)


def test_all_errors_are_reported_at_once_in_the_order_of_their_lines() -> None:
    messages = errors(
        "actions: allocate\ncolour: red\ntiers:\n- plugins:\n  - name: gnag\n  - name: pirority"
    )
    assert [error.split()[0] for error in messages] == ["conf:2:", "conf:5:", "conf:6:"]


def test_unknown_plugins_get_a_remedy_and_the_known_ones_are_listed_once() -> None:
    own = "plugins of your own are loaded by --plugins-dir"
    known = ", ".join(sorted(CATALOG.plugins))
    assert errors(f"{ONE_PLUGIN}exits\n  - name: zzz") == (
        f'conf:4: unknown plugin "exits"; known: {known}; {own}',
        f'conf:5: unknown plugin "zzz"; {own}',
    )


@pytest.mark.parametrize(
    ("actions", "warning"),
    [
        ("allocate, enqueue", "allocate runs before enqueue"),
        ("enqueue, backfill, allocate", "backfill runs before allocate"),
        ("preempt, allocate", "preempt runs before allocate"),
        ("reclaim, allocate", "reclaim runs before allocate"),
        ("allocate, allocate", "allocate is listed 2 times"),
    ],
)
def test_an_order_that_makes_little_sense_is_a_warning(actions: str, warning: str) -> None:
    policy = load_policy(f'actions: "{actions}"', WHOLE)
    assert policy.actions == tuple(actions.split(", "))
    assert [message for message in policy.warnings if warning in message], policy.warnings


@pytest.mark.parametrize("actions", ["enqueue, allocate, preempt, reclaim, backfill", "preempt", "backfill"])
def test_a_sensible_order_is_not_commented_on(actions: str) -> None:
    assert load_policy(f'actions: "{actions}"', WHOLE).warnings == ()


def test_an_argument_that_volcano_has_and_we_do_not_have_yet_is_a_warning() -> None:
    policy = load_policy(
        ONE_PLUGIN + "deviceshare\n    arguments: {deviceshare.AscendMindClusterVNPUEnable: true}",
        load_catalog(),
        "conf",
    )
    assert policy.warnings == (
        "conf:5: plugin deviceshare: deviceshare.AscendMindClusterVNPUEnable:"
        " known to Volcano, not in Stromboli yet: no effect",
    )


def test_a_plugin_that_stands_twice_is_a_warning_and_a_second_configuration_an_error() -> None:
    text = (
        ONE_PLUGIN + "gang\n- plugins:\n  - name: gang\nconfigurations:\n- name: allocate\n"
        "  arguments: {predicateErrorCacheEnable: false}\n- name: allocate"
    )
    second = "conf:10: a second configuration of allocate is ignored: the first one counts"
    assert errors(text) == (second,)
    policy = load(text, lenient=True)
    assert [entry.name for entry in policy.plugins] == ["gang", "gang"]
    assert policy.configurations["allocate"] == AllocateArguments(False)
    assert policy.warnings == (
        "conf:6: plugin gang is listed twice, first in line 4",
        second,
    )


def test_proportion_and_hierarchical_drf_do_not_go_together_in_one_tier() -> None:
    one_tier = ONE_PLUGIN + "proportion\n  - name: drf\n    enableHierarchy: true"
    assert "proportion and drf with hierarchy enabled conflicts" in errors(one_tier)[0]
    assert "proportion and drf with hierarchy enabled conflicts" in errors(one_tier, lenient=True)[0]
    load(ONE_PLUGIN + "proportion\n- plugins:\n  - name: drf\n    enableHierarchy: true")
    load(ONE_PLUGIN + "proportion\n  - name: drf")


def test_leniency_ignores_what_volcano_ignores() -> None:
    policy = load(
        ONE_PLUGIN + "binpack\n    enableJobOder: false\n    arguments: {binpack.weight: high, colour: red}\n"
        "  - name: gnag\ncolour: red\n",
        lenient=True,
    )
    assert [(entry.name, entry.arguments) for entry in policy.plugins] == [("binpack", BinpackArguments(1))]
    assert len(policy.warnings) == 5


@pytest.mark.parametrize(
    "text", ["actions: allocat", "actions: 'x", "actions: allocate\ntiers: gang", "actions: ''"]
)
def test_leniency_has_the_limits_that_volcano_has(text: str) -> None:
    assert errors(text, lenient=True)


def test_an_extension_point_of_an_own_plugin_brings_its_own_switch() -> None:
    class Printer(Plugin):
        name = "printer"

        @point(every, "enablePrintJob")
        def print_job(self) -> bool:
            return True

    policy = load_policy(
        ONE_PLUGIN + "printer\n    enablePrintJob: no", Catalog(CATALOG.actions, {"printer": Printer})
    )
    assert policy.plugins[0].switches["enablePrintJob"] is False


def test_many_errors_are_cut_short_in_the_message_only() -> None:
    with pytest.raises(PolicyError, match=r"\.\.\. and 10 more$") as caught:
        load("actions: allocate\n" + "".join(f"x{n}: 1\n" for n in range(30)))
    assert len(caught.value.errors) == 30


def test_the_built_in_policy_is_that_of_volcano() -> None:
    policy = default_policy(CATALOG)
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [[entry.name for entry in tier] for tier in policy.tiers] == [PLUGINS[:3], PLUGINS[3:]]
    assert policy.warnings == ()


def test_presets_load_without_a_warning() -> None:
    loaded = {name: load_policy(text, load_catalog(), name) for name, text in PRESETS.items()}
    assert [policy.warnings for policy in loaded.values()] == [()] * len(PRESETS)
    off = [entry.name for entry in loaded["full"].plugins if not entry.switches["enablePreemptable"]]
    assert off == ["gang", "drf"]


def test_an_unknown_preset_names_the_nearest_one() -> None:
    with pytest.raises(LookupError, match='no preset "fairshare"; did you mean "fair-share"'):
        preset("fairshare")


def test_a_wrong_new_file_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text("actions: allocate")
    file = PolicyFile(path, CATALOG)
    assert file.refresh() is None
    path.write_text("actions: alocate")
    assert file.refresh() == PolicyReading(
        False,
        (f'{path}:1: failed to find Action alocate; did you mean "allocate"?',),
        f"{path}: the policy loaded before stays in force",
    )
    assert file.refresh() is None
    assert file.current.actions == ("allocate",)
    path.write_text("actions: backfill")
    assert file.refresh() == PolicyReading(True, (), f"{path}: the new policy is in force")
    assert file.current.actions == ("backfill",)


def test_a_file_that_vanishes_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text("actions: allocate")
    file = PolicyFile(path, CATALOG)
    path.unlink()
    reading = file.refresh()
    assert reading is not None
    assert reading.problems == (f"{path}: cannot be read: No such file or directory",)
    assert file.current.actions == ("allocate",)


@pytest.mark.parametrize("content", [None, b"\xff", b"a" * (2 << 20), b"actions: nonsense"])
def test_a_file_that_is_wrong_from_the_start_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "conf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PolicyError, match="conf"):
        PolicyFile(path, CATALOG)


def test_a_config_map_is_in_force_while_it_exists(tmp_path: Path) -> None:
    base = load_policy("actions: allocate", CATALOG, "preset own")
    policy = OverridablePolicy(base, "ConfigMap a/b", CATALOG, lenient=True)
    assert (policy.current, policy.refresh(), policy.source_name) == (base, None, "preset own")
    policy.override = "actions: ["
    broken = policy.refresh()
    assert broken is not None
    assert broken.outcome == "ConfigMap a/b: the policy of preset own stays in force"
    policy.override = "actions: backfill"
    assert policy.refresh() == PolicyReading(True, (), "ConfigMap a/b: the new policy is in force")
    assert (policy.current.actions, policy.current.source_name) == (("backfill",), "ConfigMap a/b")
    policy.override = "actions: alocate"
    reading = policy.refresh()
    assert reading is not None
    assert (reading.in_force, reading.outcome) == (
        False,
        "ConfigMap a/b: the policy loaded before stays in force",
    )
    assert (policy.current.actions, policy.source_name) == (("backfill",), "ConfigMap a/b")
    policy.override = ""
    assert policy.refresh() == PolicyReading(True, (), "preset own: the new policy is in force")
    assert policy.current is base


def test_a_file_in_whose_place_there_is_no_config_map_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text("actions: allocate")
    policy = OverridablePolicy(PolicyFile(path, CATALOG), "ConfigMap a/b", CATALOG, lenient=True)
    path.write_text("actions: backfill")
    assert policy.refresh() == PolicyReading(True, (), f"{path}: the new policy is in force")
    policy.override = "actions: enqueue"
    policy.refresh()
    path.write_text("actions: allocate")
    assert policy.refresh() is None
    policy.override = ""
    assert policy.refresh() == PolicyReading(True, (), f"{path}: the new policy is in force")
    assert policy.current.actions == ("allocate",)


KEYS_AND_VALUES = [
    "actions", "tiers", "plugins", "name", "arguments", "configurations", "metrics", "gang", "drf", "proportion",
    "allocate", "enqueue, allocate", "enableHierarchy", "binpack", "binpack.weight", "true", "5", "",
]  # fmt: skip
TEXTS = st.sampled_from(KEYS_AND_VALUES) | st.text(max_size=4)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)
FILES = st.fixed_dictionaries(
    {"actions": TEXTS}, optional=dict.fromkeys(["tiers", "configurations", "metrics"], TREES)
)


@given(FILES.map(json.dumps) | st.text(max_size=80) | st.binary(max_size=40), st.booleans())
def test_any_file_gives_a_policy_or_a_policy_error(text: str | bytes, lenient: bool) -> None:
    try:
        policy = load_policy(text, CATALOG, "conf", lenient)
    except PolicyError as error:
        assert error.errors
    else:
        assert set(policy.actions) <= set(CATALOG.actions)


def test_a_prefix_and_an_ending_in_common_are_no_misspelling() -> None:
    known = ["predicate.NodePortsEnable", "predicate.PodAffinityEnable"]
    for removed in ("predicate.GPUNumberEnable", "predicate.GPUSharingEnable"):
        assert suggestion(removed, known) == f"; known: {', '.join(known)}"
    assert suggestion("predicates.NodePortEnable", known) == '; did you mean "predicate.NodePortsEnable"?'
