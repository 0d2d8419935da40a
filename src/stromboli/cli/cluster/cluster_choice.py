"""Which running cluster of `stromboli up` a command means."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from stromboli.cli.cli_errors import Usage
from stromboli.embedded.running_clusters import FolderError, RunningCluster, find_cluster, running_clusters
from stromboli.kube.cluster_access import Access, find_access
from stromboli.kube.credentials import BadConfig


def choose_cluster(data: Path | None) -> RunningCluster:
    """The cluster in a folder, else that of $KUBECONFIG, else the only one; `FolderError` if there is none."""
    if data is None and names_kubeconfig():
        with suppress(BadConfig):
            if (running := cluster_at(find_access())) is not None:
                return running
    return find_cluster(data)


def cluster_at(access: Access) -> RunningCluster | None:
    """The running cluster of this user with that API server, if it is one."""
    return next((cluster for cluster in running_clusters() if cluster.url == access.server), None)


def names_kubeconfig() -> bool:
    """Whether $KUBECONFIG names a file that exists; that of a cluster goes when the cluster stops."""
    paths = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    return any(path and Path(path).exists() for path in paths)


def find_api_server(data: Path | None, kubeconfig: str, context: str) -> tuple[Access, RunningCluster | None]:
    """The API server, and the cluster of `stromboli up` that it belongs to, if it does."""
    if data is not None and kubeconfig:
        raise Usage("--data and --kubeconfig exclude each other: give one of them")
    if data is not None:
        running = find_cluster(data)
        return find_access(str(running.kubeconfig), context=context), running
    if kubeconfig or names_kubeconfig():
        access = find_access(kubeconfig, context=context)
        with suppress(FolderError):  # no list of clusters: it may be any
            return access, cluster_at(access)
        return access, None
    try:
        running = find_cluster(None)
    except FolderError:
        if running_clusters():
            raise  # several: the user has to say which
        try:
            return find_access(context=context), None
        except BadConfig:
            raise FolderError(
                "no cluster runs; `stromboli up` starts one, and --kubeconfig or KUBECONFIG names another"
            ) from None
    return find_access(str(running.kubeconfig), context=context), running
