"""docs/plan.md saves every kind of object that a plan reads."""

from __future__ import annotations

from pathlib import Path

from stromboli.api.types.kinds import GROUPS, kind_name

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def _resource(kind: str) -> str:
    return f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"


def test_the_page_saves_every_kind_that_a_plan_reads() -> None:
    page = PAGE.read_text().partition("### A cluster of yours")[2].partition("\n## ")[0]
    words = page.replace(",", " ").replace("`", " ").split()
    resources = {word.partition(".")[0] for word in words}
    read = {_resource(kind_name(kind)) for kinds in GROUPS.values() for kind in kinds}
    assert read <= resources
