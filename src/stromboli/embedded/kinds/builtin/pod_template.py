"""PodTemplates."""

from stromboli.embedded.kinds.kind import builtin
from stromboli.embedded.kinds.pod_owners import OwnerStrategy


class PodTemplateStrategy(OwnerStrategy):
    kind_name = "PodTemplate"
    template = ("template", "spec")


KIND = builtin("", "podtemplates", "PodTemplate", strategy=PodTemplateStrategy())
