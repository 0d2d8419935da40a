"""What pages of single objects have in common."""

from __future__ import annotations

from stromboli.cli.cluster.object_events import Happening
from stromboli.cli.dashboard.pages.object_elements import event_table


def test_warnings_stand_out_among_events_and_not_by_colour_alone() -> None:
    events = [
        Happening(10.0, 10.0, kind, reason, "pod/p", "text", 1, "", "default")
        for kind, reason in (("Normal", "Scheduled"), ("Warning", "Unschedulable"))
    ]
    table = event_table(events, "default", 20.0)
    assert table.count('<tr class="warning">') == 1
    assert "<strong>Unschedulable</strong>" in table
    assert "<strong>Scheduled</strong>" not in table
