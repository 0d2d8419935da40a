"""What the controllers' metrics endpoint shows."""

from __future__ import annotations

from stromboli.controllers.controller_metrics import Metrics


def test_counters_are_declared_under_the_names_of_their_samples() -> None:
    metrics = Metrics()
    metrics.job_ended("Completed", "default/a", "q")
    text = metrics.text().decode()
    assert "# TYPE volcano_job_completed_phase_count counter\n" in text
    assert 'volcano_job_completed_phase_count{job_name="default/a",queue_name="q"} 1.0\n' in text
    assert "volcano_jobflow_failed_phase_count_total" not in text
    assert "# TYPE stromboli_controller_failures_total counter\n" in text
