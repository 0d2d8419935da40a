"""Frames of `stromboli top`: they fit the terminal, and show nothing that it could obey."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from stromboli.api.decoding import decode
from stromboli.cli.live.cluster_content import ClusterContent
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.cli.top.frame_text import ScreenState, draw, fitted
from stromboli.cli.top.keyboard import keys_in
from stromboli.cli.top.top_screen import TopScreen, frame
from stromboli.cli.top.top_views import TABS, amount_text
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.number_of_examples import scaled

MANY = (
    *nodes(";".join(f"node-{number} cpu=8,memory=32Gi,nvidia.com/gpu=4" for number in range(60))),
    *queues("research weight=3; production weight=1"),
    *(
        each
        for number in range(30)
        for each in job_manifests(f"job-{number}", queue="research", cpu=1, running_on="node-1")
    ),
    *(each for number in range(30) for each in job_manifests(f"wait-{number}", queue="production", cpu=1)),
)


def content_of(*manifests: Any) -> ClusterContent:
    records = ClusterRecords()
    for manifest in manifests:
        records.put(decode(manifest), new=True)
    return ClusterContent(records, None, None)


CONTENT = content_of(*MANY)


def text(
    state: ScreenState, width: int = 80, height: int = 24, content: ClusterContent = CONTENT
) -> list[str]:
    return [line.plain.rstrip() for line in draw(content, state, width, height, time.time())]


@settings(deadline=None)
@given(st.integers(20, 200), st.integers(6, 60), st.integers(0, len(TABS) - 1), st.text(max_size=5))
def test_a_frame_fits_any_terminal(width: int, height: int, tab: int, filter: str) -> None:
    lines = draw(CONTENT, ScreenState(tab=tab, filter=filter), width, height, time.time())
    assert len(lines) == height
    assert max(cell_len(line.plain) for line in lines) <= width
    assert all(line.plain.isprintable() for line in lines)


def test_in_80_columns_and_24_lines_there_is_something_of_everything() -> None:
    lines = text(ScreenState())
    titles = [line.split()[0] for line in lines if line.split() and line.split()[0].isupper()]
    assert titles == ["CPU", "QUEUE", "WAITING", "JOB", "NODE"]
    assert "   5 of 30" in next(line for line in lines if line.startswith("WAITING JOB"))


def test_rows_are_scrolled_filtered_and_sorted() -> None:
    state = ScreenState(tab=TABS.index("Nodes"), offset=50)
    assert text(state)[-2].startswith("node-9 ")
    state = ScreenState(tab=TABS.index("Nodes"), filter="NODE-7")
    shown = [line for line in text(state) if line.startswith("node-")]
    assert [line.split()[0] for line in shown] == ["node-7"]
    by_use = ScreenState(tab=TABS.index("Nodes"), sortings={"Nodes": 1})
    assert next(line for line in text(by_use) if line.startswith("node-")).startswith("node-1 ")


def test_hostile_names_are_shown_harmlessly() -> None:
    group, pod = job_manifests("a", pods=1, cpu=1)
    group["status"] = {
        "phase": "Inqueue",
        "conditions": [{"type": "Unschedulable", "status": "True", "message": "\x1b[2J\x07" + "界" * 10**5}],
    }
    content = content_of(group, pod)
    lines = draw(content, ScreenState(where="\x1b[2J"), 80, 24, time.time())
    assert all(line.plain.isprintable() and cell_len(line.plain) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("given_text", "width", "fits"), [("abc", 5, "abc  "), ("abcdef", 4, "abc…"), ("界界", 3, "界…")]
)
def test_texts_are_cut_by_what_a_terminal_shows_of_them(given_text: str, width: int, fits: str) -> None:
    assert fitted(given_text, width) == fits


@pytest.mark.parametrize(
    ("amount", "resource", "shown"),
    [
        (0.5, "cpu", "0.5"),
        (180_000, "cpu", "180000"),
        (2**36, "memory", "64Gi"),
        (None, "gpu", "-"),
        (16, "gpu", "16"),
    ],
)
def test_amounts_are_short_and_exact_enough(amount: float | None, resource: str, shown: str) -> None:
    assert amount_text(amount, resource) == shown


def test_without_a_terminal_a_frame_has_neither_keys_nor_empty_lines() -> None:
    lines = frame(content_of(), ScreenState(), 80, 24)
    assert len(lines) < 8
    assert "quit" not in lines[-1].plain


# -- keys


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("q", ["q"]),
        ("\t\x1b[Z", ["tab", "back tab"]),
        ("\x1b[A\x1bOB\x1b[5~", ["up", "down", "page up"]),
        ("\x1b", ["escape"]),
        ("\x1b[99;1X", []),
        ("/ab\x7f\r", ["/", "a", "b", "backspace", "enter"]),
        ("\x00é", ["é"]),
    ],
)
def test_what_a_terminal_sends_is_read_as_keys(typed: str, keys: list[str]) -> None:
    assert keys_in(typed) == keys


@given(st.text())
def test_any_bytes_are_keys_or_nothing(typed: str) -> None:
    for key in keys_in(typed):
        assert key.isprintable()


def screen() -> TopScreen:
    return TopScreen(None, content_of(*MANY), None, ScreenState())  # type: ignore[arg-type]


def test_keys_change_views_filter_sort_and_pause() -> None:
    shown = screen()
    state = shown.state
    for key in ("tab", "tab", "left", "4", "s", "/", "q", "x", "backspace", "enter"):
        assert not shown.press(key), key
    assert (state.tab, state.filter, state.sortings, state.typing) == (3, "q", {"Jobs": 1}, False)
    shown.press("escape")
    shown.press("p")
    assert (state.filter, state.paused) == ("", True)
    shown.press("up")
    assert state.offset == 0
    assert shown.press("q")


@given(
    st.lists(
        st.sampled_from(
            ["tab", "back tab", "up", "down", "end", "home", "s", "/", "a", "enter", "escape", "p", "7", "6"]
        )
    )
)
@settings(deadline=None, max_examples=scaled(50))
def test_a_frame_can_be_drawn_after_any_keys(keys: list[str]) -> None:
    shown = screen()
    for key in keys:
        shown.press(key)
    assert len(draw(CONTENT, shown.state, 80, 24, time.time())) == 24
