"""Paths of questions: what they may name, and what is no question."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.scheduler.explain.explain_paths import (
    RESOURCES,
    CycleQuery,
    Question,
    parse_cycle_query,
    parse_path,
)


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("/explain/podgroups/default/train", Question("podgroups", "default", "train")),
        ("/explain/jobs/team-a/train.v2", Question("jobs", "team-a", "train.v2")),
        ("/explain/pods/default/train-0", Question("pods", "default", "train-0")),
        ("/explain/queues/research", Question("queues", "", "research")),
        ("/explain/nodes/n1", Question("nodes", "", "n1")),
        ("/explain/podgroups.scheduling.k8s.io/a/b", Question("podgroups.scheduling.k8s.io", "a", "b")),
    ],
)
def test_a_path_names_a_resource_a_namespace_and_a_name(path: str, question: Question) -> None:
    assert parse_path(path) == question
    assert question.path == path


@pytest.mark.parametrize(
    "path",
    [
        "/explain/",
        "/explain/podgroups/train",
        "/explain/queues/a/b",
        "/explain/secrets/default/token",
        "/explain/podgroups/default/train/log",
        "/explain/podgroups/default/",
        "/explain/podgroups//train",
        "/explain/podgroups/../../metrics",
        "/explain/podgroups/%2e%2e/train",
        "/explain/podgroups/default/a%2Fb",
        "/explain/podgroups/default/a%00",
        "/explain/podgroups/default/%1b%5b31m",
        "/explain/podgroups/default/Train",
        "/explain/queues/" + "a" * 254,
        "/explain/queues/" + "%61" * 1000,
        "/debug/podgroups/default/train",
    ],
)
def test_whatever_else_is_sent_is_no_question(path: str) -> None:
    assert parse_path(path) is None


@given(st.text(max_size=60))
def test_no_text_can_make_a_question_of_other_characters(text: str) -> None:
    question = parse_path(f"/explain/{text}")
    if question is not None:
        assert question.resource in RESOURCES
        assert all(char.isalnum() or char in "-." for char in question.namespace + question.name)


@given(st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
def test_a_query_for_cycles_is_read_as_it_was_written(after: int, limit: int) -> None:
    wanted = CycleQuery(after, limit)
    url = urlsplit(wanted.path)
    assert url.path == "/explain/cycles"
    assert parse_cycle_query(dict(parse_qsl(url.query))) == wanted


@given(st.dictionaries(st.sampled_from(["after", "limit", "x"]), st.text(max_size=20)))
def test_no_text_can_make_a_query_of_anything_but_numbers(query: dict[str, str]) -> None:
    wanted = parse_cycle_query(query)
    if wanted is not None:
        assert {key: f"{int(text)}" for key, text in query.items()}.items() <= {
            key: f"{number}" for key, number in wanted._asdict().items()
        }.items()
        assert all(0 <= number < 10**15 for number in wanted)
