"""PodDisruptionBudgets: which pods may be evicted together; pdb names no victims itself."""

from typing import Any

from stromboli.testing import World
from tests.manifests import Manifest, group, node, pod, policy

WEB = {"app": "web"}


def _budget(name: str, allowed: int, namespace: str = "default", **more: Any) -> Manifest:
    selector = more.get("selector", {"matchLabels": WEB})
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(more.get("disrupted", ()), None)}
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector},
        "status": status,
    }


def _running(name: str, **labels: str) -> Manifest:
    manifest = pod(name, "j", on="n1", cpu=0)
    manifest["metadata"]["labels"] = labels
    return manifest


def _world(*objects: Manifest) -> World:
    world = World(policy=policy("allocate", "pdb")).add(node("n1", cpu="8"), group("j", 1), *objects)
    world.step()
    return world


def _asked(world: World, point: str) -> str:
    """Whom pdb lets go, all tasks offered in the order of their names."""
    tasks = sorted(world.cluster.tasks.values(), key=lambda task: task.name)
    ask = getattr(world.plugin("pdb"), point)
    chosen = ask(tasks) if point == "victim_limits" else ask(tasks[0], tasks)
    return " ".join(task.name for task in chosen)


def _allowed(world: World) -> str:
    answers = {_asked(world, point) for point in ("preemptable", "reclaimable", "victim_limits")}
    assert len(answers) == 1
    return answers.pop()


def test_so_many_go_as_the_budget_allows_first_come_first() -> None:
    pods = [_running(name, app="web") for name in "abc"]
    assert _allowed(_world(*pods, _budget("b", 2))) == "a b"
    assert _allowed(_world(*pods, _budget("b", 0))) == ""
    assert _allowed(_world(*pods)) == "a b c"


def test_a_budget_counts_only_pods_that_it_selects_in_its_namespace() -> None:
    pods = [_running("a", app="web"), _running("b", app="db")]
    assert _allowed(_world(*pods, _budget("b", 0))) == "b"
    assert _allowed(_world(*pods, _budget("b", 0, namespace="other"))) == "a b"
    by_key = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert _allowed(_world(*pods, _budget("b", 1, selector=by_key))) == "a"


def test_a_budget_that_selects_nothing_or_is_invalid_protects_no_pod() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "Likes"}]}
    for selector in ({}, None, broken):
        assert _allowed(_world(_running("a", app="web"), _budget("b", 0, selector=selector))) == "a"


def test_every_budget_of_a_pod_must_allow_it_and_a_spared_pod_uses_them_up_all_the_same() -> None:
    pods = [_running("a", app="web", tier="front"), _running("b", app="web"), _running("c", app="web")]
    front = _budget("front", 0, selector={"matchLabels": {"tier": "front"}})
    assert _allowed(_world(*pods, front, _budget("web", 2))) == "b"


def test_a_disruption_that_is_under_way_is_not_counted_again() -> None:
    pods = [_running("a", app="web"), _running("b", app="web")]
    assert _allowed(_world(*pods, _budget("web", 0, disrupted=["a"]))) == "a"


def test_a_pod_without_labels_is_no_victim_but_may_be_voted_out() -> None:
    """Volcano: pdb refuses it as a victim, though no budget selects it; what others nominate for shuffle goes."""
    world = _world(_running("bare"), _running("web", app="web"))
    assert _asked(world, "preemptable") == _asked(world, "reclaimable") == "web"
    assert _asked(world, "victim_limits") == "bare web"


def test_budgets_are_looked_at_again_when_they_change() -> None:
    world = _world(_running("a", app="web"), _budget("b", 0))
    assert _allowed(world) == ""
    world.add(_budget("b", 1)).step()
    assert _allowed(world) == "a"
    world.add(_budget("b", 0)).step()
    world.remove(_budget("b", 0)).step()
    assert _allowed(world) == "a"


def test_it_names_no_victims_itself() -> None:
    """Volcano's pdb nominates whatever its budgets allow (spec 02 D5)."""
    assert not _world().engine.rules.has("victim_tasks")
