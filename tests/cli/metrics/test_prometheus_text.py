"""Prometheus' text format is read whatever it says, and within bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from stromboli.cli.metrics import prometheus_text
from stromboli.cli.metrics.prometheus_text import Page, Sample, parse_page

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
LABELS = st.dictionaries(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True), st.text(max_size=20), max_size=4
)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def parsed(text: str | bytes) -> Page:
    return parse_page(text.encode() if isinstance(text, str) else text, lambda name: True)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_or_left_out(page: bytes) -> None:
    read = parsed(page)
    assert len(read.samples) + read.unreadable <= page.count(b"\n") + 1


@given(
    st.lists(
        st.sampled_from(["a", "{", "}", '"', "\\", ",", "=", " ", "1", "#", "\n", "+Inf", "e5"]), max_size=60
    )
)
def test_anything_like_samples_is_read_or_left_out(pieces: list[str]) -> None:
    for sample in parsed("".join(pieces)).samples:
        assert sample.name
        assert isinstance(sample.value, float)


@given(NAMES, st.dictionaries(NAMES.filter(lambda name: ":" not in name), TEXT, max_size=4), st.floats())
def test_what_is_written_is_read_back(name: str, labels: dict[str, str], value: float) -> None:
    pairs = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    shown = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value).replace("nan", "NaN"))
    (sample,) = parsed(f"# HELP x\n{name}{{{pairs}}} {shown} 1700000000000\n").samples
    assert (sample.name, dict(sample.labels)) == (name, labels)
    assert sample.value == value or (math.isnan(value) and math.isnan(sample.value))


@given(st.lists(st.floats(0, 1e6), max_size=20), TEXT, st.floats(allow_nan=False))
def test_it_reads_what_the_library_writes_as_the_library_does(
    durations: list[float], label: str, level: float
) -> None:
    registry = CollectorRegistry()
    histogram = Histogram("a_ms", "Durations", ("stage",), registry=registry)
    for duration in durations:
        histogram.labels(label).observe(duration)
    Counter("b", "Count", registry=registry).inc(3)
    Gauge("c", "Level", ("name",), registry=registry).labels(label).set(level)
    page = generate_latest(registry)
    expected = [
        Sample(sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    ]
    read = parsed(page)
    assert sorted(read.samples) == sorted(expected)
    assert read.unreadable == 0


@pytest.mark.parametrize(
    "line",
    [
        "a{b=1} 2",
        'a{b="c" 2',
        'a{b="c} 2',
        "a",
        "a b",
        "a 1.2.3",
        "a0x10",
        "<html>",
        'a{b="c"}',
        "a.b 1",
        "1a 2",
    ],
)
def test_a_line_that_is_no_sample_is_counted(line: str) -> None:
    assert parsed(f"{line}\nb 1\n") == Page([Sample("b", (), 1.0)], unreadable=1, named=1)


def test_only_wanted_metrics_are_kept() -> None:
    page = parse_page(b'a{x="1"} 1\nb 2\n', {"b"}.__contains__)
    assert page == Page([Sample("b", (), 2.0)], named=2)


def test_lines_labels_and_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    long = f'a{{b="{"x" * prometheus_text.LONGEST_LINE}"}} 1\n'
    many = ",".join(f'l{number}="x"' for number in range(prometheus_text.MOST_LABELS + 1))
    assert parsed(f"{long}a{{{many}}} 1\nb 1\n") == Page([Sample("b", (), 1.0)], unreadable=2, named=1)
    monkeypatch.setattr(prometheus_text, "MOST_SERIES", 2)
    assert parsed("a 1\nb 2\nc 3\nd 4\n")[1:] == (0, 2, 4)
    monkeypatch.setattr(prometheus_text, "LARGEST_PAGE", 8)
    assert len(parsed("a 1\nb 2\nc 3\n").samples) == 2
