"""What a pod of a task asks for, in short."""

from __future__ import annotations

from typing import Any

from stromboli.cli.job.task_requests import images_text, requests_text


def task(*resources: dict[str, Any]) -> dict[str, Any]:
    containers = [
        {"name": str(number), "image": f"i{number}", "resources": each}
        for number, each in enumerate(resources)
    ]
    return {"template": {"spec": {"containers": containers}}}


def test_containers_are_added_up_and_limits_count_where_nothing_is_requested() -> None:
    both = task(
        {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "4", "nvidia.com/gpu": 2}},
        {"requests": {"cpu": 1, "memory": "512Mi"}},
    )
    assert requests_text(both) == "cpu=1500m,memory=1536Mi,nvidia.com/gpu=2"
    assert images_text(both) == "i0,i1"


def test_what_is_no_quantity_is_shown_as_it_is() -> None:
    assert requests_text(task({"requests": {"cpu": "much"}})) == "cpu=much?"
    assert requests_text({}) == "<none>"
