"""Queues: their defaults, and the problems of one that is created, updated or deleted."""

from fractions import Fraction
from typing import Any

import msgspec

from stromboli.admission.rules import queue_hierarchy_rules
from stromboli.admission.rules.field import Field
from stromboli.admission.rules.quantity_rules import check_amounts
from stromboli.admission.rules.rule_context import Context, QueueIndex
from stromboli.admission.rules.semantic_equality import same
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.api.types.scheduling import Queue

_BODY = "requestBody"
_MAX_WEIGHTS_SHOWN = 200
_AMOUNTS = ("capability", "deserved", "guarantee")
_STATES = (names.QUEUE_OPEN, names.QUEUE_CLOSED)


def default(queue: dict[str, Any], context: Context) -> None:
    """Fill in what the user left out."""
    meta, spec = queue.get("metadata"), queue.setdefault("spec", {})
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    if isinstance(annotations, dict):
        path, weights = annotations.get(names.HIERARCHY), annotations.get(names.HIERARCHY_WEIGHTS)
        if path and weights and not str(path).startswith(names.ROOT_QUEUE):
            annotations[names.HIERARCHY] = f"{names.ROOT_QUEUE}/{path}"
            annotations[names.HIERARCHY_WEIGHTS] = f"1/{weights}"
    if isinstance(spec, dict):
        if spec.get("reclaimable") is None:
            spec["reclaimable"] = True
        spec["weight"] = spec.get("weight") or 1


def check(queue: Field, old: Any, context: Context) -> None:
    """Report what is wrong with a new queue (`old` is None) or a changed one."""
    _check_fields(queue, context.queues)
    if queue.report:
        return
    if old is not None and _name(queue) == names.ROOT_QUEUE and context.settings.root_queue_protection:
        _check_root(queue["spec"], old)
    before = _spec_of(old)
    moved = old is None or not same(queue["spec"]["parent"].value, before.get("parent"))
    if moved and _name(queue) == names.ROOT_QUEUE:
        queue_hierarchy_rules.check_root(queue["spec"]["parent"])
    if context.queues is None or _name(queue) == names.ROOT_QUEUE:
        return
    now = _decoded(queue)
    if now is None:
        return
    resized = any(not same(queue["spec"][part].value, before.get(part), "limits") for part in _AMOUNTS)
    if moved:
        queue_hierarchy_rules.check_parent(
            queue["spec"]["parent"], now, context.queues, context.settings.max_queue_depth
        )
    if (moved or resized) and not queue.report:
        queue_hierarchy_rules.check_amounts(queue["spec"], now, context.queues)


def check_deletion(queue: Field, context: Context) -> None:
    """Report why a queue must not be deleted."""
    name = _name(queue)
    field = queue["metadata"]["name"]
    if name in (names.DEFAULT_QUEUE, names.ROOT_QUEUE):
        root = name == names.ROOT_QUEUE
        remedy = "all queues are below it; delete or close those instead" if root else "close it instead"
        field.wrong(f"`{name}` queue can not be deleted", remedy)
        return
    if context.queues is None:
        return
    known = context.queues.get(name)
    if known is None:
        field.wrong(f'queue.scheduling.volcano.sh "{name}" not found')
        return
    pods = queue_hierarchy_rules.allocated_pods(known)
    if context.settings.queue_allocated_pods_check and pods:
        field.wrong(
            f"queue {name} cannot be deleted because it has allocated Pods: {pods}", "let its jobs end first"
        )
    elif context.unfinished_job:
        field.wrong(
            f"queue {name} cannot be deleted because it has unfinished jobs, such as {context.unfinished_job}",
            "wait until they finish, or delete them first",
        )
    children = context.queues.children(name)
    if children:
        listed = ", ".join(child.name for child in children)
        field.wrong(
            f"queue {name} can not be deleted because it has {len(children)} child queues: {listed}",
            "delete or move those first",
        )


def _check_fields(queue: Field, queues: QueueIndex | None) -> None:
    spec = queue["spec"].renamed(f"{_BODY}.spec")
    capability = check_amounts(_with_texts(spec["capability"]))
    deserved = check_amounts(_with_texts(spec["deserved"]))
    guarantee = check_amounts(_with_texts(spec["guarantee"]["resource"]))
    _check_order(spec, capability, deserved, guarantee)
    state = queue["status"]["state"]
    if state.text() not in ("", *_STATES):
        state.renamed(f"{_BODY}.spec.state").invalid(f"queue state must be in [{' '.join(_STATES)}]")
    _check_hierarchy(queue, queues)


def _with_texts(amounts: Field) -> Field:
    """The same resource list with numbers as text, as messages show quantities."""
    plain = {
        key: str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for key, value in amounts.mapping().items()
    }
    return Field(plain or None, amounts.report, amounts.path, amounts.shown_path)


def _check_order(
    spec: Field,
    capability: dict[str, Fraction],
    deserved: dict[str, Fraction],
    guarantee: dict[str, Fraction],
) -> None:
    """No more is guaranteed than deserved, and no more deserved than allowed."""
    stated = _with_texts(spec["deserved"])
    for name, minimum in guarantee.items():
        text = spec["guarantee"]["resource"][name].value
        if name not in deserved:
            absent = Field("<nil>", stated.report, f"{stated.path}.{name}", f"{stated.shown_path}.{name}")
            absent.invalid(f"deserved[{name}] must be >= guarantee[{name}]={text}", "set deserved, too")
        elif deserved[name] < minimum:
            stated[name].invalid(f"deserved[{name}]={stated[name].value} must be >= guarantee[{name}]={text}")
    for name, amount in deserved.items():
        if name in capability and amount > capability[name]:
            limit = spec["capability"][name].value
            stated[name].invalid(
                f"deserved[{name}]={stated[name].value} must be <= capability[{name}]={limit}"
            )


def _check_hierarchy(queue: Field, queues: QueueIndex | None) -> None:
    annotations = queue["metadata"]["annotations"]
    path, weights = annotations[names.HIERARCHY].text(), annotations[names.HIERARCHY_WEIGHTS].text()
    if not path and not weights:
        return
    field = Field(
        path, annotations.report, f"{annotations.path}.{names.HIERARCHY}", f"{_BODY}.metadata.annotations"
    )
    steps = path.count("/") + 1
    if steps > MAX_QUEUE_DEPTH:
        field.invalid(
            f"{names.HIERARCHY} has {steps} steps, at most {MAX_QUEUE_DEPTH} are allowed", "shorten it"
        )
    elif steps != weights.count("/") + 1:
        field.invalid(f"{names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}")
    else:
        for weight in weights.split("/"):
            _check_weight(field, weight, weights[:_MAX_WEIGHTS_SHOWN])
    for other in queues.all() if queues is not None else ():
        below = other.metadata.annotations.get(names.HIERARCHY, "")
        if path and other.name != _name(queue) and below.startswith(f"{path}/"):
            field.invalid(f"{path} is not allowed to be in the sub path of {below} of queue {other.name}")


def _check_weight(field: Field, weight: str, weights: str) -> None:
    weight = weight[:_MAX_WEIGHTS_SHOWN]
    try:
        value = float(weight)
    except ValueError:
        why = f'strconv.ParseFloat: parsing "{weight}": invalid syntax'
        field.invalid(f"{weight} in the {weights} is invalid number: {why}")
        return
    if not value > 0:
        field.invalid(f"{weight} in the {weights} must be larger than 0")


def _check_root(spec: Field, old: Any) -> None:
    before = _spec_of(old)
    for part in _AMOUNTS:
        if not same(spec[part].value, before.get(part), "limits"):
            spec[part].wrong(
                "root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
                "set them on the queues below it",
            )
            return


def _decoded(queue: Field) -> Queue | None:
    plain = {key: queue.value.get(key) for key in ("metadata", "spec") if isinstance(queue.value, dict)}
    try:
        return decode_as(Queue, msgspec.json.encode(plain))
    except (BadObject, RecursionError) as error:
        path = error.field if isinstance(error, BadObject) else ""
        text = error.problem if isinstance(error, BadObject) else "nested too deeply"
        queue[path or "spec"].wrong(text)
        return None


def _spec_of(old: Any) -> dict[str, Any]:
    spec = old.get("spec") if isinstance(old, dict) else None
    return spec if isinstance(spec, dict) else {}


def _name(queue: Field) -> str:
    return queue["metadata"]["name"].text()
