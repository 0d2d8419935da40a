"""`stromboli demo`: two teams share a small GPU cluster of `stromboli up`, shown live.

`story` lists what is submitted and when, from the manifests in `examples/demo`; `frame` is the state of the cluster at
a moment, `chronicle` the changes between frames, `view` renders both, `command` runs the demo.
"""

from stromboli.cli.demo.command import demo

__all__ = ["demo"]
