"""The arguments of `deviceshare`: Volcano's names, and ways to share that exclude each other."""

from __future__ import annotations

import pytest

from stromboli.extensions import load_catalog
from stromboli.plugins.deviceshare.share_arguments import ShareArguments
from stromboli.policy.policy import PolicyError, load_policy
from tests.plugins.deviceshare.card_worlds import card_policy


@pytest.mark.parametrize(
    ("on", "named"),
    [
        (("GPUSharingEnable", "GPUNumberEnable"), "GPUSharingEnable and deviceshare.GPUNumberEnable"),
        (("GPUSharingEnable", "VGPUEnable"), "VGPUEnable and deviceshare.GPUSharingEnable"),
        (("GPUNumberEnable", "VGPUEnable"), "VGPUEnable and deviceshare.GPUNumberEnable"),
    ],
)
def test_ways_to_share_gpus_that_exclude_each_other_are_an_error(on: tuple[str, ...], named: str) -> None:
    """Volcano's process exits."""
    with pytest.raises(PolicyError, match="share GPUs in one way only: set one of deviceshare." + named):
        load_policy(card_policy(**dict.fromkeys(on, True)), load_catalog())


def test_rules_keep_their_texts_and_are_dropped_without_any() -> None:
    rules = ({"team": "red", "number": 3}, {}, {"number": 3})
    assert ShareArguments(exclusive_rules=rules).rules == ({"team": "red"},)


def test_mind_cluster_is_accepted_with_a_warning() -> None:
    policy = load_policy(card_policy(AscendMindClusterVNPUEnable=True), load_catalog())
    assert any(
        "AscendMindClusterVNPUEnable: known to Volcano, not in Stromboli yet" in text
        for text in policy.warnings
    )
