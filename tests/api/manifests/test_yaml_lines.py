"""YAML as Volcano reads it, with lines, and without a way to hurt the reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.manifests.yaml_lines import YamlError, plain, read_yaml


def read(text: str) -> object:
    return plain(read_yaml(text).root)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("Yes", True), ("ON", True), ("true", True),
        ("n", False), ("off", False), ('"true"', "true"),
        ("~", None), ("", None), ("12", 12), ("-0x1F", -31), ("010", 8), ("0b11", 3), ("1_000", 1000), ("089", 89.0),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("-.inf", float("-inf")), ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"), ("!!str 5", "5"), ("!!float 5", 5.0),
        ("9" * 30, 1e30), ("9" * 5000, float("inf")),
    ],
)  # fmt: skip
def test_a_bare_word_means_what_it_means_in_go(text: str, value: object) -> None:
    assert read(text) == value
    assert type(read(text)) is type(value)


def test_a_value_is_blamed_on_the_line_of_its_key() -> None:
    root = read_yaml("a:\n  b:\n  - 1\n  - 2\n").root.value
    assert isinstance(root, dict)
    inner = root["a"].value
    assert isinstance(inner, dict)
    assert (root["a"].line, inner["b"].line) == (1, 2)
    assert [item.line for item in inner["b"].value] == [3, 4]  # type: ignore[union-attr]


def test_merge_keys_and_anchors_work() -> None:
    assert read("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}") == {
        "base": {"x": 1, "y": 2},
        "use": {"x": 1, "y": 3},
    }
    assert read("- &a {x: 1}\n- &b {x: 2, z: 3}\n- {<<: [*a, *b]}")[2] == {"x": 1, "z": 3}  # type: ignore[index]


def test_a_key_that_stands_twice_is_reported_and_the_last_one_counts() -> None:
    document = read_yaml("a: 1\nb: 2\na: 3\n")
    assert plain(document.root) == {"a": 3, "b": 2}
    assert document.problems == [(3, '"a" stands here twice, first in line 1')]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "more than 10000 values"),
        ("&a [*a]", "refers to itself"),
        ("[" * 100_000, "nested more than 50 deep"),
        ("- " * 100_000, "nested more than 50 deep"),
        ("a: \x00", "not YAML"),
        ("a: [1\nb: 2", "not YAML"),
        ("\tx: 1", "not YAML"),
        ("? [a]\n: b", "a key must be"),
        ("!!python/name:os.system ''", "cannot be read with the tag"),
        ("!!int hello", "cannot be read with the tag"),
        ("<<: 5", "needs a mapping"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(YamlError, match=message):
        read(text)


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#, \n\t<?%@`~0.", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except YamlError as error:
        assert str(error)
