"""Containers of a pod template, as far as they can be judged without an API server."""

from stromboli.admission.rules.field import Place
from stromboli.admission.rules.quantity_rules import check_resources
from stromboli.api.name_rules import against_label, against_port_name

_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check(container: Place, names: set[str], volumes: set[str], host_network: bool) -> None:
    """Report what is wrong; `names` are those of the containers before it, `volumes` those of the pod."""
    _check_name(container["name"], names)
    _check_image(container["image"])
    pull = container["imagePullPolicy"]
    if pull.text() and pull.text() not in _PULL:
        pull.unsupported(_PULL)
    check_resources(container["resources"])
    _check_ports(container["ports"], host_network)
    for variable in container["env"].items():
        _check_variable(variable)
    _check_mounts(container["volumeMounts"], volumes)


def _check_name(place: Place, names: set[str]) -> None:
    name = place.text()
    if not name:
        place.required()
    elif reasons := against_label(name):
        place.invalid("; ".join(reasons))
    elif name in names:
        place.duplicate()
    names.add(name)


def _check_image(place: Place) -> None:
    image = place.text()
    if not image:
        place.required()
    elif image != image.strip():
        place.invalid("must not have leading or trailing whitespace")


def _check_ports(ports: Place, host_network: bool) -> None:
    names: set[str] = set()
    for port in ports.items():
        name, number, host = port["name"], port["containerPort"], port["hostPort"]
        if name.text():
            if reasons := against_port_name(name.text()):
                name.invalid("; ".join(reasons))
            elif name.text() in names:
                name.duplicate()
            names.add(name.text())
        if not number.number():
            number.required()
        elif not 0 < number.number() < 65536:
            number.invalid("must be between 1 and 65535, inclusive")
        if not 0 <= host.number() < 65536:
            host.invalid("must be between 1 and 65535, inclusive")
        elif host_network and host.number() not in (0, number.number()):
            number.invalid("must match `hostPort` when `hostNetwork` is true")
        if port["protocol"].text("TCP") not in _PROTOCOLS:
            port["protocol"].unsupported(_PROTOCOLS)


def _check_variable(variable: Place) -> None:
    name = variable["name"]
    if not name.text():
        name.required()
    elif "=" in name.text() or not (name.text().isascii() and name.text().isprintable()):
        name.invalid(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    source = variable["valueFrom"]
    if not source.given:
        return
    given = [field for field in _SOURCES if source[field].given]
    if variable["value"].text():
        source.invalid("may not be specified when `value` is not empty")
    elif len(given) != 1:
        source.invalid(
            f"must specify one of: {', '.join(_SOURCES)}"
            if not given
            else "may not have more than one field specified at a time"
        )


def _check_mounts(mounts: Place, volumes: set[str]) -> None:
    paths: set[str] = set()
    for mount in mounts.items():
        name, path = mount["name"], mount["mountPath"]
        if not name.text():
            name.required()
        elif name.text() not in volumes:
            name.not_found("add a volume of that name to the pod")
        if not path.text():
            path.required()
        elif path.text() in paths:
            path.invalid("must be unique")
        paths.add(path.text())
