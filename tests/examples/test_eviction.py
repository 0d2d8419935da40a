"""The policy that docs/eviction.md compares the presets with is what it says it is."""

from pathlib import Path

from stromboli.policy.presets import PRESETS, TOPOLOGY

VOLCANO = Path(__file__).parents[2] / "examples" / "eviction" / "volcano.conf"


def test_volcano_conf_is_the_preset_without_what_volcano_does_not_know() -> None:
    _, text = VOLCANO.read_text().split("\n", 1)  # the first line is a comment
    preset = PRESETS["high-priority"].replace(", gangpreempt", "")
    assert preset.partition("configurations:")[0].startswith(text + TOPOLOGY)
