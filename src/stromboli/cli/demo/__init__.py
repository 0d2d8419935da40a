"""`stromboli demo`: two teams share a cluster of `stromboli up`, watched live.

`story` says who submits what and when, from the manifests in `examples/demo`; `frame` is the state of the cluster at a
moment, `chronicle` what changed since the last one, `view` renders both, `command` runs it all.
"""

from stromboli.cli.demo.command import demo

__all__ = ["demo"]
