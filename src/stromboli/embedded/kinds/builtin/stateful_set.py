"""StatefulSets."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.apps import set_rules
from stromboli.api.schemas.schema_problems import Problem, required
from stromboli.embedded.kinds.kind import IN_ALL, SCALE, STATUS, Content, builtin
from stromboli.embedded.kinds.pod_owners import SelectingStrategy, image_cells
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(stateful_set: Content, now: float) -> Cells:
    spec, status = nested_map(stateful_set, "spec"), nested_map(stateful_set, "status")
    ready = f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}"
    return [name_of(stateful_set), ready, age(stateful_set, now), *image_cells(stateful_set, "spec")]


class StatefulSetStrategy(SelectingStrategy):
    kind_name = "StatefulSet"
    rolling_update = "updateStrategy", {"partition": 0}
    printer = printer("Name | Ready | Age | Containers+ | Images+", _row)

    def pod_spec(self, content: Content, spec: Content) -> Content:
        """Each claim is a volume of the pods, instead of another of its name."""
        claims = content["spec"].get("volumeClaimTemplates")
        if not claims:
            return spec
        names = dict.fromkeys((claim.get("metadata") or {}).get("name", "") for claim in claims)
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in names]
        return {**spec, "volumes": [*volumes, *others]}

    def owner_problems(self, content: Content) -> Iterable[Problem]:
        yield from super().owner_problems(content)
        for index, claim in enumerate(content["spec"].get("volumeClaimTemplates") or ()):
            if not (claim.get("metadata") or {}).get("name"):
                yield required(f"{'.'.join(self.template)}.volumes[{index}].name")
        yield from set_rules.stateful_set_problems(content["spec"])

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return set_rules.stateful_set_update_problems(old, new)


KIND = builtin(
    "apps", "statefulsets", "StatefulSet", "sts", SCALE, STATUS, strategy=StatefulSetStrategy(), **IN_ALL
)
