"""The example of `stromboli explain`: its output answers why the gang waits and when it starts."""

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def output() -> str:
    result = CliRunner().invoke(app, ["explain", "-f", str(ROOT / "examples/explain"), "train"])
    assert result.exit_code == 0, result.output
    return result.output


def test_first_line_has_the_reason(output: str) -> None:
    assert output.splitlines()[0] == (
        "PodGroup ml/train waits: train-0: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
    )


@pytest.mark.parametrize(
    "title",
    [
        "Checks",
        "Shortage",
        "Capacity by node group",
        "Held by",
        "It would start if",
        "Expected start",
        "History",
    ],
)
def test_output_has_all_sections(output: str, title: str) -> None:
    assert title in output.splitlines()


def test_remedies_cover_requests_other_jobs_nodes_and_policy(output: str) -> None:
    remedies = [line for line in output.splitlines() if line.startswith("  - ")]
    assert len(remedies) == 4
    assert "nvidia.com/gpu 2" in remedies[0]
    assert "ml/pretrain" in remedies[1]
    assert "8xa100" in remedies[2]
    assert "reclaim" in remedies[3]
    assert "ml/pretrain-5" in remedies[3]


def test_start_is_forecast_from_the_deadline_of_the_running_job(output: str) -> None:
    assert "2030-01-01T14:00:00Z" in output.partition("\nExpected start\n")[2]
