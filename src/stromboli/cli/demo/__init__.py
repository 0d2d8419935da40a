"""`stromboli demo`: two teams share a cluster of `stromboli up`, watched live.

`story` is who submits what and when, from the manifests in `examples/demo`; `sight` is what the API server shows at a
moment, `news` what changed since the last one, `view` how that looks, `command` puts it together.
"""

from stromboli.cli.demo.command import demo

__all__ = ["demo"]
