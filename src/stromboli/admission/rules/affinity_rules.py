"""Where a pod wants to be: selectors, affinities, tolerations and spreading, well formed or not."""

from stromboli.admission.rules.field import Place
from stromboli.api import names
from stromboli.api.name_rules import against_label_value, against_qualified
from stromboli.api.types.pod import PREFERRED, REQUIRED

_LABEL_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_NODE_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")
_EFFECTS = (names.NO_SCHEDULE, names.PREFER_NO_SCHEDULE, names.NO_EXECUTE)


def check_placement(spec: Place) -> None:
    """Report what is wrong with the wishes of a pod."""
    check_labels(spec["nodeSelector"])
    affinity = spec["affinity"]
    _check_node_affinity(affinity["nodeAffinity"])
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in affinity[kind][REQUIRED].items():
            _check_pod_term(term)
        for wish in affinity[kind][PREFERRED].items():
            _check_weight(wish["weight"])
            _check_pod_term(wish["podAffinityTerm"])
    for toleration in spec["tolerations"].items():
        _check_toleration(toleration)
    for constraint in spec["topologySpreadConstraints"].items():
        _check_spreading(constraint)


def check_labels(labels: Place) -> None:
    for key, value in labels.entries():
        if reasons := against_qualified(key):
            Place(key, labels.report, labels.path, labels.called).invalid("; ".join(reasons))
        if reasons := against_label_value(value.text()):
            Place(value.value, labels.report, value.path, labels.called).invalid("; ".join(reasons))


def _check_node_affinity(affinity: Place) -> None:
    required = affinity[REQUIRED]
    terms = required["nodeSelectorTerms"]
    if required.given and not terms.items():
        terms.required("must have at least one node selector term")
    wishes = affinity[PREFERRED].items()
    for wish in wishes:
        _check_weight(wish["weight"])
    for term in (*terms.items(), *(wish["preference"] for wish in wishes)):
        for requirement in term["matchExpressions"].items():
            _check_requirement(requirement, _NODE_OPERATORS)


def _check_requirement(requirement: Place, operators: tuple[str, ...]) -> None:
    operator, values = requirement["operator"], requirement["values"]
    count = len(values.items())
    if operator.text() not in operators:
        operator.unsupported(operators)
    elif operator.text() in ("In", "NotIn") and not count:
        values.required("must be specified when `operator` is 'In' or 'NotIn'")
    elif operator.text() in ("Exists", "DoesNotExist") and count:
        values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator.text() in ("Gt", "Lt") and count != 1:
        values.required("must be specified single value when `operator` is 'Lt' or 'Gt'")
    if reasons := against_qualified(requirement["key"].text()):
        requirement["key"].invalid("; ".join(reasons))


def _check_selector(selector: Place) -> None:
    check_labels(selector["matchLabels"])
    for requirement in selector["matchExpressions"].items():
        _check_requirement(requirement, _LABEL_OPERATORS)


def _check_pod_term(term: Place) -> None:
    key = term["topologyKey"]
    if not key.text():
        key.required("can not be empty")
    elif reasons := against_qualified(key.text()):
        key.invalid("; ".join(reasons))
    _check_selector(term["labelSelector"])
    _check_selector(term["namespaceSelector"])


def _check_weight(weight: Place) -> None:
    if not 1 <= weight.number() <= 100:
        weight.invalid("must be in the range 1-100")


def _check_toleration(toleration: Place) -> None:
    key, operator, value, effect = (toleration[field] for field in ("key", "operator", "value", "effect"))
    if key.text() and (reasons := against_qualified(key.text())):
        key.invalid("; ".join(reasons))
    if not key.text() and operator.text() != "Exists":
        operator.invalid(
            'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        )
    if operator.text() == "Exists":
        if value.text():
            toleration.invalid("value must be empty when `operator` is 'Exists'")
    elif operator.text() not in ("", "Equal", "Gt", "Lt"):
        operator.unsupported(("Equal", "Exists"))
    if effect.text() and effect.text() not in _EFFECTS:
        effect.unsupported(_EFFECTS)
    if toleration["tolerationSeconds"].given and effect.text() != names.NO_EXECUTE:
        effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set")


def _check_spreading(constraint: Place) -> None:
    if constraint["maxSkew"].number() <= 0:
        constraint["maxSkew"].invalid("must be greater than zero")
    if not constraint["topologyKey"].text():
        constraint["topologyKey"].required("can not be empty")
    choices = (names.DO_NOT_SCHEDULE, names.SCHEDULE_ANYWAY)
    if constraint["whenUnsatisfiable"].text() not in choices:
        constraint["whenUnsatisfiable"].unsupported(choices)
    _check_selector(constraint["labelSelector"])
