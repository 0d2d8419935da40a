"""The measures of a run as a terminal shows them."""

from __future__ import annotations

import io

from rich.console import Console

from stromboli.cli.simulate.run_text import print_run
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.runs.run_record import RunRecord
from tests.simulator.reports.run_records import busy_run, job, record_of


def shown(record: RunRecord, wide: bool = False) -> str:
    out = io.StringIO()
    print_run(Console(file=out, width=80, highlight=False), record, summary(record), wide)
    return out.getvalue()


def test_measures_have_titles_and_units():
    lines = shown(
        record_of(job("a", 0, 0, 7200, cpu=3), job("b", 0, 7200, 7205, cpu=3), end=7205)
    ).splitlines()
    cells = {
        line.rsplit("  ", 1)[0].strip(): line.rsplit("  ", 1)[1].strip() for line in lines if "  " in line
    }
    assert cells["Jobs"] == "2"
    assert cells["Makespan"] == "2.0 h"
    assert cells["Utilisation of cpu"] == "75.0 %"
    assert cells["Mean wait"] == "60 min"
    assert cells["Mean bounded slowdown"] == "361"


def test_a_plain_table_has_what_matters_and_a_wide_one_users_gangs_and_sizes_as_well():
    plain, wide = shown(busy_run(100)), shown(busy_run(100), wide=True)
    assert len(plain.splitlines()) <= 15
    assert "Queues" in plain
    assert "Queues" not in shown(record_of(job("a", 0, 0, 1)), wide=True)
    for more in ("Users", "Gangs, by number of pods", "Jobs, by cpu that they ask for", "Mean slowdown"):
        assert more not in plain
        assert more in wide


def test_evictions_are_shown_where_there_are_any():
    assert "Evictions" not in shown(record_of(job("a", 0, 0, 1)))
    text = shown(record_of(job("a", 0, 5, 6, evictions=1, lost_work=60.0)))
    assert "Evictions                  1" in text
    assert "Work lost, pod-time     60 s" in text


def test_of_lists_of_pods_gpus_come_first_and_waits_are_left_out_where_nobody_waits():
    record = record_of(job("a", 0, 0, 1))
    assert "Mean wait" in shown(record)
    record.measures |= {"gpu_allocation": 0.95, "fragmentation": 0.04}
    assert [line.split("  ")[0] for line in shown(record).splitlines()[1:4]] == [
        "GPU allocation",
        "Fragmentation",
        "Jobs",
    ]
    assert "wait" not in shown(record)
    assert "Mean wait" in shown(record, wide=True)
    waiting = record_of(job("a", 0, 5, 6))
    waiting.measures["gpu_allocation"] = 0.95
    assert "Mean wait" in shown(waiting)


def test_many_queues_are_cut_short_unless_all_are_asked_for():
    record = record_of(*(job(f"j{i}", 0, 0, 1, queue=f"queue{i}") for i in range(30)), cpu=30)
    assert "(18 more: -o wide)" in shown(record)
    assert "queue29" in shown(record, wide=True)


def test_an_empty_run_and_hostile_names_are_shown_all_the_same():
    assert "Mean wait" in shown(RunRecord("none", {}, {}, []))
    text = shown(
        record_of(job("a", 0, 0, 1, queue="\x1b[31m[red]"), job("b", 0, 0, 1, queue="b"), partial=True)
    )
    assert "\x1b" not in text
    assert "[red]" in text
    assert text.startswith("a run, interrupted")
