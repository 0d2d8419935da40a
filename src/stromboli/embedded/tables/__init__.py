"""What `kubectl get` prints: columns per kind, as a Kubernetes API server lays them out. Pure functions of objects.

`layout_of` finds the layout of a kind, `table` fills it.
"""

from stromboli.embedded.tables.kind_layouts import layout_of
from stromboli.embedded.tables.layout import Layout
from stromboli.embedded.tables.printer_columns import custom_layout
from stromboli.embedded.tables.table import INCLUDE, partial_list, partial_metadata, table

__all__ = ["INCLUDE", "Layout", "custom_layout", "layout_of", "partial_list", "partial_metadata", "table"]
