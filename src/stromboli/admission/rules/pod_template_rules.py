"""Pod templates: what Kubernetes would refuse at the first pod, said when the job is submitted.

A subset of Kubernetes' own rules, those that can be judged offline; the API server judges the rest.
"""

from stromboli.admission.rules import container_rules
from stromboli.admission.rules.affinity_rules import check_labels, check_placement
from stromboli.admission.rules.field import Place
from stromboli.api.name_rules import against_label, against_qualified

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")


def check(template: Place) -> bool:
    """Report what is wrong with a pod template, and say whether nothing is."""
    before = len(list(template.report)) + template.report.untold
    check_labels(template["metadata"]["labels"])
    annotations = template["metadata"]["annotations"]
    for key, value in annotations.entries():
        if reasons := against_qualified(key.lower()):
            value.invalid("; ".join(reasons))
    check_spec(template["spec"])
    return len(list(template.report)) + template.report.untold == before


def check_spec(spec: Place) -> None:
    """Report what is wrong with the specification of a pod."""
    volumes = _check_volumes(spec["volumes"])
    if not spec["containers"].items():
        spec["containers"].required(way_out="a pod needs at least one container")
    seen: set[str] = set()
    host_network = spec["hostNetwork"].yes()
    for field in ("containers", "initContainers"):
        for one in spec[field].items():
            container_rules.check(one, seen, volumes, host_network)
    for field, choices in (("restartPolicy", _RESTART), ("dnsPolicy", _DNS)):
        if spec[field].text() and spec[field].text() not in choices:
            spec[field].unsupported(choices)
    check_placement(spec)
    _check_numbers(spec)


def _check_numbers(spec: Place) -> None:
    deadline, grace = spec["activeDeadlineSeconds"], spec["terminationGracePeriodSeconds"]
    if deadline.given and not 1 <= deadline.number() < 2**31:
        deadline.invalid("must be between 1 and 2147483647, inclusive")
    if grace.number() < 0:
        grace.invalid("must be greater than or equal to 0")
    for field in ("hostname", "subdomain"):
        if spec[field].text() and (reasons := against_label(spec[field].text())):
            spec[field].invalid("; ".join(reasons))


def _check_volumes(volumes: Place) -> set[str]:
    """The names of the volumes."""
    seen: set[str] = set()
    for volume in volumes.items():
        name = volume["name"]
        if not name.text():
            name.required()
        elif reasons := against_label(name.text()):
            name.invalid("; ".join(reasons))
        elif name.text() in seen:
            name.duplicate()
        seen.add(name.text())
        sources = [key for key, value in volume.entries() if key != "name" and value.given]
        if len(sources) > 1:
            volume[sources[1]].forbidden("may not specify more than 1 volume type")
    return seen
