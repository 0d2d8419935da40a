"""The annotation that has the CPUs of a task for its node and for later schedulers."""

import json

import pytest

from stromboli.api import names
from stromboli.model.cpus.cpu_ledger import CpuGrant, granted_cpus


def test_the_annotation_has_the_counts_of_volcano_and_the_cpus_themselves() -> None:
    grant = CpuGrant("0-2,8", ((0, 3), (1, 1)))

    assert json.loads(grant.annotations[names.TOPOLOGY_DECISION]) == {
        "numa": {"0": {"cpu": "3"}, "1": {"cpu": "1"}},
        "cpus": "0-2,8",
    }


def test_a_grant_is_read_back_from_its_annotation() -> None:
    grant = CpuGrant("0-2,8", ((0, 3), (1, 1)))

    assert granted_cpus(grant.annotations) == grant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"cpus": 3}',
        '{"cpus": ""}',
        '{"cpus": "0-99999999"}',
        '{"numa": {"0": {"cpu": "4"}}}',
        '{"cpus": "0", "numa": {"x": {}}}',
        '{"cpus": "0", "numa": {"0": {"cpu": "1.5"}}}',
        "[" * 100_000,
        '{"cpus": "' + "0," * 100_000 + '0"}',
    ],
)
def test_an_annotation_that_names_no_cpus_is_no_grant(text: str) -> None:
    assert granted_cpus({names.TOPOLOGY_DECISION: text}) is None
