"""How two policies differ in what they do."""

from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.policy_differences import PolicyDifference, policy_differences
from stromboli.policy.presets import PRESETS

CATALOG = load_catalog()
PLAIN = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: binpack
"""


def differences(before: str, after: str) -> list[PolicyDifference]:
    return policy_differences(load_policy(before, CATALOG), load_policy(after, CATALOG))


def test_a_policy_differs_from_itself_in_nothing() -> None:
    for text in PRESETS.values():
        assert differences(text, text) == []


def test_comments_and_written_defaults_make_no_difference() -> None:
    spelled = PLAIN + "    arguments:\n      binpack.weight: 1  # as by default\n"
    assert differences(PLAIN, spelled) == []


def test_actions_differ_by_their_order() -> None:
    (only,) = differences(PLAIN, PLAIN.replace("enqueue, allocate", "allocate, enqueue"))
    assert only == PolicyDifference("actions", "enqueue, allocate", "allocate, enqueue")


def test_an_added_plugin_is_a_difference_of_the_tiers_alone() -> None:
    (only,) = differences(PLAIN, PLAIN + "- plugins:\n  - name: predicates\n")
    assert only == PolicyDifference("tiers", "gang, binpack", "gang, binpack | predicates")


def test_arguments_and_switches_are_named_by_their_keys() -> None:
    changed = PLAIN.replace("name: gang", "name: gang\n    enablePreemptable: false")
    changed += "    arguments:\n      binpack.weight: 5\n      binpack.resources: nvidia.com/gpu\n"
    changed += "      binpack.resources.nvidia.com/gpu: 3\n"
    told = {difference.setting: difference[1:] for difference in differences(PLAIN, changed)}
    assert told["plugin gang: enablePreemptable"] == ("true", "false")
    assert told["plugin binpack: binpack.weight"] == ("1", "5")
    assert any("nvidia.com/gpu" in after for _, after in told.values())


def test_arguments_of_actions_count_where_both_policies_run_the_action() -> None:
    changed = PLAIN + "configurations:\n- name: enqueue\n  arguments:\n    letUrgentThrough: true\n"
    (only,) = differences(PLAIN, changed)
    assert only == PolicyDifference("action enqueue: letUrgentThrough", "false", "true")


def test_a_plugin_that_is_listed_twice_is_compared_twice() -> None:
    twice = PLAIN + "- plugins:\n  - name: gang\n    enableJobReady: false\n"
    changed = twice.replace(
        "  - name: gang\n  - name: binpack", "  - name: gang\n    enablePreemptable: false\n  - name: binpack"
    )
    before, after = (load_policy(text, CATALOG, lenient=True) for text in (twice, changed))
    (only,) = policy_differences(before, after)
    assert only == PolicyDifference("plugin gang: enablePreemptable", "true", "false")
