"""The documentation is true: what it shows runs, what it points to is there, and nothing is left out."""

import re
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command

from stromboli.admission.rules.rule_context import Settings
from stromboli.cli.main import app
from stromboli.cli.manifest_lint import lint_paths
from stromboli.engine.plugin import POINTS, Plugin
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.testing.policy_text import catalog_with
from tests.docs.pages import PAGES, ROOT, anchors, assert_shows, blocks, links, run_page, script

DOCS = ROOT / "docs"
CATALOG = load_catalog()
SHOWN = [
    page
    for page in PAGES
    if any(block.language in ("python", "console") for block in blocks(page.read_text()))
]
TARGETS_OF_VOLCANO = {"setup", "vcctl", "command-lines"}
"""Of its own Makefile, which some pages name."""


class Emptiest(Plugin):
    """Stands in for the plugin that docs/custom-plugins.md makes."""

    name = "emptiest"


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return script("reference")


@pytest.mark.parametrize("page", SHOWN, ids=_name)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("examples", "tests", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_policies_that_a_page_shows_are_right(page: Path) -> None:
    for block in blocks(page.read_text()):
        if block.language == "yaml" and "tiers:" in block.body and not block.mark:
            whole = block.body if "actions:" in block.body else f'actions: "allocate"\n{block.body}'
            load_policy(whole, catalog_with([Emptiest], []), _name(page))


def _manifests(page: Path) -> list[str]:
    shown = [block for block in blocks(page.read_text()) if block.language == "yaml"]
    return [block.body for block in shown if "apiVersion:" in block.body and block.mark != "not run"]


@pytest.mark.parametrize("page", [page for page in PAGES if _manifests(page)], ids=_name)
def test_manifests_that_a_page_shows_are_right(page: Path, tmp_path: Path) -> None:
    if page.name == "admission.md":
        return  # which shows what is wrong with its own
    for number, text in enumerate(_manifests(page)):
        (tmp_path / f"{number}.yaml").write_text(text)
    assert [str(finding) for finding in lint_paths([str(tmp_path)], Settings()).findings] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text()):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{link}: there is no {target}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text()), f"{link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_targets_of_make_that_a_page_names_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = re.findall(r"(?:`|^\$ |^)make ([a-z][\w-]*)", page.read_text(), re.M)
    assert set(named) <= targets | TARGETS_OF_VOLCANO


def test_each_target_of_make_is_described_for_contributors() -> None:
    targets = re.findall(r"^([\w-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [target for target in targets if f"`make {target}`" not in text and target != "help"] == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=_name)
def test_generated_tables_are_up_to_date(page: Path, reference: ModuleType) -> None:
    text = page.read_text()
    assert reference.up_to_date(text) == text, "run: python docs/reference.py"


def test_a_marker_of_a_table_that_does_not_exist_is_reported_with_the_page(
    reference: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    page = tmp_path / "plugins.md"
    page.write_text("## binpak\n\n<!-- generated: plugin binpak -->\n<!-- end -->\n")
    with pytest.raises(
        SystemExit,
        match=r"plugins\.md: invalid marker <!-- generated: plugin binpak -->: no plugin .*binpack",
    ):
        reference.main()
    page.write_text("<!-- generated: plugn binpack -->\n<!-- end -->\n")
    with pytest.raises(SystemExit, match=r"plugins\.md: invalid marker .*; valid kinds: .*plugin"):
        reference.main()
    page.write_text("")
    with pytest.raises(SystemExit, match=r"plugins\.md: plugin \"\S+\" has no table; expected:\n## \S+\n"):
        reference.main()


@pytest.mark.parametrize("name", sorted(CATALOG.plugins))
def test_every_plugin_is_documented(name: str, reference: ModuleType) -> None:
    text = (DOCS / "plugins.md").read_text()
    expected = f"plugins.md lacks:\n{reference.block('plugin', name)}"
    assert name in anchors(text), expected
    assert f"<!-- generated: plugin {name} -->" in text, expected


@pytest.mark.parametrize("name", sorted(CATALOG.actions))
def test_every_action_is_documented(name: str, reference: ModuleType) -> None:
    text = (DOCS / "actions.md").read_text()
    expected = f"actions.md lacks:\n{reference.block('action', name)}"
    assert name in anchors(text), expected
    assert f"<!-- generated: action {name} -->" in text, expected


@pytest.mark.parametrize("name", sorted(get_command(app).commands))  # type: ignore[attr-defined]
def test_every_command_is_documented(name: str) -> None:
    assert any(re.search(rf"\bstromboli {name}\b", page.read_text()) for page in DOCS.glob("*.md"))
    assert f"stromboli {name}" in (DOCS / "index.md").read_text()


def test_every_point_and_preset_is_documented() -> None:
    points, policy = (DOCS / "extension-points.md").read_text(), (DOCS / "policy.md").read_text()
    assert all(f"`{name}(" in points for name in POINTS)
    assert all(f"`{name}`" in policy for name in PRESETS)


def test_every_page_can_be_reached_from_the_index() -> None:
    linked = {link.partition("#")[0] for link in links((DOCS / "index.md").read_text())}
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_every_deviation_names_a_test_that_is_there() -> None:
    text = (DOCS / "deviations.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", text)
    assert len(named) > 10
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_every_test_of_a_deviation_stands_in_the_table() -> None:
    text = (DOCS / "deviations.md").read_text()
    for path in (ROOT / "tests" / "deviations").glob("test_*.py"):
        missing = [
            name
            for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.M)
            if f"`{name}`" not in text
        ]
        assert missing == []


def test_a_page_that_shows_something_else_would_be_noticed() -> None:
    assert_shows("a\nb\nc in 0.31 s\n", ["a", "...", "c in 0.01 s"])
    with pytest.raises(AssertionError, match="it is"):
        assert_shows("a\nb\n", ["a", "c"])
