"""Checks of an installation as functions of what was read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stromboli.cli.check.check_result import CheckResult, CheckState, failed, ok, skipped, warning
from stromboli.cli.check.installation_facts import InstallationFacts
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of, namespace_of
from stromboli.embedded.tables.age_text import instant
from stromboli.embedded.tables.table_printer import condition

MOST_SKEW = 5.0
"""Seconds by which clocks may differ without anybody noticing."""
LEASES_OF = {"scheduler": ("volcano", "vc-scheduler"), "controllers": ("vc-controller-manager",)}
"""Names of the leases of each component, ours and Volcano's."""
DASHBOARD = "stromboli-dashboard"
"""In the name of the Deployment of the dashboard, which is optional."""
INSTALL = "docs/install.md says how to install it"


def check_installation(facts: InstallationFacts) -> list[CheckResult]:
    """All checks, in the order in which one would mend what they tell."""
    from stromboli.cli.check.definition_checks import check_definitions
    from stromboli.cli.check.webhook_checks import check_webhooks

    checks: tuple[Callable[[InstallationFacts], Iterator[CheckResult]], ...] = (
        _api_server,
        _clock,
        check_definitions,
        _deployments,
        _leases,
        check_webhooks,
        _queues,
        _nodes,
        _rights,
    )
    return [result for check in checks for result in check(facts)]


def unread(facts: InstallationFacts, check: str, kind: str) -> Iterator[CheckResult]:
    """That a kind could not be read, if so."""
    if kind in facts.refused:
        yield skipped(check, facts.refused[kind])


def _api_server(facts: InstallationFacts) -> Iterator[CheckResult]:
    user = f", you are {facts.user}" if facts.user else ""
    yield ok("api-server", f"{facts.server} answers, {facts.version}{user}")


def _clock(facts: InstallationFacts) -> Iterator[CheckResult]:
    """The clocks of this machine and of the API server; certificates, leases and ages go by them."""
    moment = instant(facts.server_time)
    if moment is None:
        if not facts.is_local:
            yield skipped("clock", "the API server does not tell its time")
        return
    skew = facts.now - moment
    if -MOST_SKEW <= skew <= MOST_SKEW + 1:  # the server tells whole seconds
        yield ok("clock", "this machine and the API server agree")
    else:
        ahead = "ahead of" if skew > 0 else "behind"
        yield warning(
            "clock",
            f"this machine is {abs(skew):.0f} s {ahead} the API server",
            "synchronise clocks (NTP): certificates, leases and ages go by them",
        )


def _deployments(facts: InstallationFacts) -> Iterator[CheckResult]:
    """Whether every component has its replicas. Other Deployments in the namespace are shown if they are not ready."""
    if facts.is_local:
        yield ok("components", "all parts run in the process of `stromboli up`")
        return
    yield from unread(facts, "components", "Deployment")
    if "Deployment" in facts.refused:
        return
    deployments = {name_of(item): item for item in facts.objects.get("Deployment", ())}
    others = dict(deployments)
    for part in ("scheduler", "controllers", "admission"):
        of_part = {name: item for name, item in deployments.items() if part.rstrip("s") in name}
        others = {name: item for name, item in others.items() if name not in of_part}
        yield from _component(part, of_part, facts.namespace)
    for name, item in others.items():
        result = _deployment("dashboard" if DASHBOARD in name else "components", name, item)
        if _replicas(item) and (DASHBOARD in name or result.state is not CheckState.OK):
            yield result


def _component(part: str, deployments: dict[str, Manifest], namespace: str) -> Iterator[CheckResult]:
    """A component by its Deployments; one that is scaled to 0 may be Volcano's, in whose place another works."""
    tell = failed if part == "scheduler" else warning
    working = [name for name, deployment in deployments.items() if _replicas(deployment)]
    if not deployments:
        yield tell(part, f"no Deployment of the {part} in namespace {namespace}", INSTALL)
    elif not working:
        name = next(iter(deployments))
        where = f"-n {namespace} deployment/{name}"
        yield tell(part, f"Deployment {name} is scaled to 0", f"kubectl scale {where} --replicas=1")
    for name in working:
        yield _deployment(part, name, deployments[name])
    if len(working) > 1 and part != "admission":
        yield warning(
            part,
            f"{' and '.join(sorted(working))} both run: unless all of them elect a leader, they work at once",
            f"kubectl scale -n {namespace} deployment/NAME --replicas=0 for the one that is not wanted",
        )


def _replicas(deployment: Manifest) -> int:
    return int((deployment.get("spec") or {}).get("replicas", 1))


def _deployment(part: str, name: str, deployment: Manifest) -> CheckResult:
    wanted, ready = _replicas(deployment), int((deployment.get("status") or {}).get("readyReplicas") or 0)
    text = f"Deployment {name}: {ready} of {wanted} replicas ready"
    where = f"-n {namespace_of(deployment)} deployment/{name}"
    if ready == 0:
        return failed(part, text, f"kubectl describe {where}; kubectl logs {where}")
    if ready < wanted:
        return warning(part, text, f"kubectl describe {where}")
    progress = condition(deployment, "Progressing")
    if progress.get("status") == "False":
        text = f"Deployment {name}: the rollout has stopped: {progress.get('message') or 'no reason given'}"
        return warning(part, text, f"kubectl rollout status {where}; kubectl logs {where}")
    if unfinished := _unfinished_rollout(deployment):
        return warning(
            part,
            f"{text}, but its rollout has not finished: {unfinished}",
            f"kubectl rollout status {where}; kubectl get pods -n {namespace_of(deployment)}",
        )
    return ok(part, text)


def _unfinished_rollout(deployment: Manifest) -> str:
    """Why `kubectl rollout status` would wait, in its words; old pods may be ready while new ones crash."""
    wanted, status = _replicas(deployment), deployment.get("status") or {}
    total, updated, available = (
        int(status.get(f"{kind}eplicas") or 0) for kind in ("r", "updatedR", "availableR")
    )
    if int(status.get("observedGeneration") or 0) < int(deployment["metadata"].get("generation") or 0):
        return "waiting for the deployment spec update to be observed"
    if updated < wanted:
        return f"{updated} out of {wanted} new replicas have been updated"
    if total > updated:
        return f"{total - updated} old replicas are pending termination"
    if available < updated:
        return f"{available} of {updated} updated replicas are available"
    return ""


def _leases(facts: InstallationFacts) -> Iterator[CheckResult]:
    """Whether somebody leads, and has said so lately."""
    if facts.is_local:
        return
    yield from unread(facts, "leases", "Lease")
    if "Lease" in facts.refused:
        return
    leases = {name_of(item): item.get("spec") or {} for item in facts.objects.get("Lease", ())}
    for part, names in LEASES_OF.items():
        present = [name for name in names if name in leases]
        if not present:
            yield warning(
                f"{part} lease",
                f"nobody has taken the lease {names[0]} in namespace {facts.namespace}",
                "fine with --leader-elect=false; otherwise the component does not run",
            )
        else:  # of those that went before, an old one may be left
            latest = max(present, key=lambda name: instant(leases[name].get("renewTime")) or 0.0)
            yield _lease(part, latest, leases[latest], facts.now)


def _lease(part: str, name: str, lease: Manifest, now: float) -> CheckResult:
    check, holder = f"{part} lease", str(lease.get("holderIdentity") or "")
    renewed, duration = instant(lease.get("renewTime")), float(lease.get("leaseDurationSeconds") or 15)
    if not holder or renewed is None:
        return failed(check, f"lease {name} has no holder", "is the component running? Its log says why not")
    age = now - renewed
    if age > duration + MOST_SKEW:
        return failed(
            check,
            f"{holder} leads by lease {name}, and has not renewed it for {age:.0f} s",
            "nobody leads until another replica takes it over: are there any? Their logs say why not",
        )
    return ok(check, f"{holder} leads, renewed {max(age, 0):.0f} s ago")


def _queues(facts: InstallationFacts) -> Iterator[CheckResult]:
    yield from unread(facts, "queues", "Queue")
    if "Queue" in facts.refused:
        return
    states = {
        name_of(queue): str((queue.get("status") or {}).get("state") or "")
        for queue in facts.objects.get("Queue", ())
    }
    if "default" not in states:
        yield failed(
            "queues", "there is no queue default", "it is made by the scheduler: is one running? See above"
        )
    elif states["default"] not in ("Open", ""):
        yield warning(
            "queues", f"queue default is {states['default'].lower()}", "stromboli queue open default"
        )
    else:
        closed = sorted(name for name, state in states.items() if state not in ("Open", ""))
        text = f"{len(states)} queues, default is open"
        yield ok("queues", f"{text}; not open: {', '.join(closed[:5])}" if closed else text)


def _nodes(facts: InstallationFacts) -> Iterator[CheckResult]:
    yield from unread(facts, "nodes", "Node")
    if "Node" in facts.refused:
        return
    nodes = facts.objects.get("Node", ())
    ready = sum(map(_is_ready, nodes))
    text = f"{ready} of {len(nodes)} nodes are ready"
    if not nodes:
        yield failed("nodes", "the cluster has no nodes", "no pod can run before there is one")
    elif not ready:
        yield failed("nodes", text, "kubectl get nodes; kubectl describe node NAME")
    else:
        yield ok("nodes", text) if ready == len(nodes) else warning("nodes", text, "kubectl get nodes")


def _is_ready(node: Manifest) -> bool:
    return bool(condition(node, "Ready").get("status") == "True")


def _rights(facts: InstallationFacts) -> Iterator[CheckResult]:
    """What the user may do of what everyday commands do."""
    yield from unread(facts, "rights", "SelfSubjectAccessReview")
    if not facts.rights:
        return
    missing = [right for right, allowed in facts.rights.items() if not allowed]
    if missing:
        yield warning(
            "rights",
            f"you may not: {', '.join(missing)}",
            "an administrator gives rights with a Role or ClusterRole; commands that need them say so",
        )
    else:
        yield ok("rights", "you may do what everyday commands do")
