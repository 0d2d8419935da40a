"""The example of an own action and plugin loads, is configured, and runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.engine.rules import Rules
from stromboli.extensions import load_catalog
from stromboli.model.job import JobId
from stromboli.policy.policy import load_policy

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_plugin"


@pytest.mark.parametrize(("switch", "printed"), [("true", "default/train\n"), ("false", "")])
def test_the_action_prints_what_the_plugin_says(
    capsys: pytest.CaptureFixture[str], switch: str, printed: str
) -> None:
    catalog = load_catalog(EXAMPLE)
    text = (EXAMPLE / "policy.yaml").read_text().replace("enablePrintJob: true", f"enablePrintJob: {switch}")
    policy = load_policy(text, catalog)
    tiers = [[catalog.plugins[e.name].build(e.arguments, e.switches) for e in tier] for tier in policy.tiers]
    job = SimpleNamespace(id=JobId("PodGroup", "default", "train"))
    session: Any = SimpleNamespace(rules=Rules(tiers), jobs=lambda: [job])
    catalog.actions["print-jobs"].run(session)
    assert capsys.readouterr().out == printed
