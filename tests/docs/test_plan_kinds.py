"""docs/plan.md saves every kind of object that a plan reads."""

from __future__ import annotations

from pathlib import Path

from stromboli.kube.api_resources import RESOURCES

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def test_the_page_saves_every_kind_that_a_plan_reads() -> None:
    page = PAGE.read_text().partition("### A cluster of yours")[2].partition("\n## ")[0]
    words = page.replace(",", " ").replace("`", " ").split()
    resources = {word.partition(".")[0] for word in words}
    assert {resource.plural for resource in RESOURCES.values()} <= resources
