"""The reader of Prometheus' expressions finds what would never tell anything."""

from __future__ import annotations

import pytest

from tests.deploy.promql import Expression, KnownMetric, PromqlError

KNOWN = {
    "wait_bucket": KnownMetric(frozenset(("queue", "le")), True),
    "binds_total": KnownMetric(frozenset(("result",)), True, {"result": frozenset(("done", "error"))}),
    "leader": KnownMetric(frozenset(), False),
    "share": KnownMetric(frozenset(("queue",)), False),
}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("leader == 1", "instance job"),
        ("sum by (result) (rate(binds_total[5m])) * 60", "result"),
        ("sum(rate(binds_total{result=~\"done|error\"}[1h30m])) without (job) > 0.01", "instance result"),
        ("histogram_quantile(0.99, sum by (queue, le) (rate(wait_bucket[5m]))) > 1e3", "queue"),
        ("share / (share > 0) > 1 and on (job) leader", "instance job queue"),
        ('label_replace(max(share), "of", "cpu", "", "") or label_replace(leader, "of", "x", "", "")', "of"),
        ("binds_total unless binds_total offset 15m", "instance job result"),
        ("share * on (job, instance) group_left () leader", "instance job queue"),
        ("absent(leader)", ""),
        ("topk(3, -share)", "instance job queue"),
    ],
)  # fmt: skip
def test_what_an_expression_tells(text: str, labels: str) -> None:
    assert " ".join(sorted(Expression(text, KNOWN).result.labels)) == labels


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("leaders == 1", "no metric leaders"),
        ('binds_total{results="error"}', "no label results"),
        ('binds_total{result="failed"}', "never has result"),
        ('binds_total{result=~"done|failed"}', "never has result"),
        ("rate(binds_total)", "rate takes"),
        ("rate(leader[5m])", "may shrink"),
        ("sum by (queue) (leader)", "only"),
        ("histogram_quantile(0.99, sum by (queue) (rate(wait_bucket[5m])))", "without le"),
        ("share > leader", "never matches"),
        ("share and on (queue) leader", "never matches"),
        ("sum(share", "expected"),
        ("share) > 1", "nothing may follow"),
        ("share > 1 §", "cannot be read"),
        ("average(share)", "no function average"),
        ("5[5m]", "a range of no vector"),
        ("share or 1", "needs two vectors"),
        ("", "something expected"),
    ],
)
def test_what_would_tell_nothing(text: str, why: str) -> None:
    with pytest.raises(PromqlError, match=why):
        Expression(text, KNOWN)
