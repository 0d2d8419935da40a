"""Job plugins: what they put into pods and beside them (spec 06 3)."""

import json
import socket
import subprocess
from base64 import b64decode
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_public_key

from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.job_pods import Member, pod_of
from stromboli.controllers.job.plugins.job_plugin import Attachment, JobPlugin, PluginFailure
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.controllers.job.plugins.plugin_flags import parse_flags
from stromboli.controllers.job.plugins.svc import Arguments as SvcArguments
from stromboli.controllers.job.plugins.tensorflow import Arguments as TensorFlowArguments
from stromboli.extension_loading import ExtensionError
from tests.controllers.job.simulated_job import SimulatedJob, make_job, task

BOTH = {"containers": [{"name": "main"}], "initContainers": [{"name": "first"}]}


def dressed(job: Job, name: str, index: int = 0) -> dict[str, Any]:
    """A pod as the plugins of its job leave it."""
    member = Member(job, next(task for task in job.spec.tasks if task.name == name), index)
    pod = pod_of(member)
    for plugin in JobPlugins().for_job(job).plugins:
        plugin.dress(member, pod)
    return pod


def env(pod: dict[str, Any], kind: str = "containers") -> dict[str, Any]:
    """Names and values of the first container."""
    variables = pod["spec"][kind][0].get("env", [])
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in variables}


def attached(job: Job) -> dict[str, Attachment]:
    return {
        attachment.kind: attachment
        for plugin in JobPlugins().for_job(job).plugins
        for attachment in plugin.attachments(job)
    }


def test_env_tells_every_container_its_index_after_the_users_own() -> None:
    spec = {"containers": [{"name": "main", "env": [{"name": "MINE", "value": "1"}]}], "initContainers": [{}]}
    pod = dressed(make_job(task(spec=spec), plugins={"env": []}), "worker", 1)
    assert env(pod) == {"MINE": "1", "VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}
    assert env(pod, "initContainers") == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}


# -- svc


def test_svc_names_the_hosts_of_every_task() -> None:
    job = make_job(
        task("ps", 2), task("my-worker", 1, spec={"hostname": "h", "subdomain": "s"}), plugins={"svc": []}
    )
    assert attached(job)["ConfigMap"].manifest["data"] == {
        "ps.host": "j-ps-0.j\nj-ps-1.j",
        "VC_PS_HOSTS": "j-ps-0.j,j-ps-1.j",
        "VC_PS_NUM": "2",
        "my_worker.host": "h.s",
        "VC_MY_WORKER_HOSTS": "h.s",
        "VC_MY_WORKER_NUM": "1",
    }


def test_svc_gives_pods_names_variables_and_files() -> None:
    job = make_job(task("a", 2, spec=BOTH), task("b", 1), plugins={"svc": []})
    pod = dressed(job, "a", 1)
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-a-1", "j")
    for kind in ("containers", "initContainers"):
        assert list(env(pod, kind)) == ["VC_A_HOSTS", "VC_A_NUM", "VC_B_HOSTS", "VC_B_NUM"]
        assert env(pod, kind)["VC_A_NUM"] == {"configMapKeyRef": {"name": "j-svc", "key": "VC_A_NUM"}}
        assert pod["spec"][kind][0]["volumeMounts"] == [{"name": "j-svc", "mountPath": "/etc/volcano"}]
    assert pod["spec"]["volumes"] == [{"name": "j-svc", "configMap": {"name": "j-svc"}}]


def test_svc_keeps_strangers_out_and_names_pods_by_a_headless_service() -> None:
    attachments = attached(make_job(plugins={"svc": ["--publish-not-ready-addresses"]}))
    labels = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "team"}
    assert attachments["Service"].manifest["spec"] == {
        "clusterIP": "None",
        "selector": labels,
        "publishNotReadyAddresses": True,
    }
    policy = attachments["NetworkPolicy"].manifest["spec"]
    assert policy["podSelector"] == {"matchLabels": labels}
    assert policy["ingress"] == [{"from": [{"podSelector": {"matchLabels": labels}}]}]
    assert {attachment.name for attachment in attachments.values()} == {"j", "j-svc"}


def test_svc_may_do_without_variables_and_policy() -> None:
    job = make_job(plugins={"svc": ["--inject-hosts-env=false", "--disable-network-policy=true"]})
    assert env(dressed(job, "worker")) == {}
    assert attached(job).keys() == {"ConfigMap", "Service"}


# -- ssh


def test_ssh_makes_a_key_pair_and_says_where_everybody_is() -> None:
    job = make_job(task("a", 2), task("b", 1, spec={"hostname": "h"}), plugins={"ssh": ["--ssh-port=2022"]})
    secret = attached(job)["Secret"]
    config = b64decode(secret.manifest["data"]["config"]).decode()
    assert config == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "Host j-a-0\n  HostName j-a-0.j\n  Port 2022\n"
        "Host j-a-1\n  HostName j-a-1.j\n  Port 2022\n"
        "Host h\n  HostName h.j\n  Port 2022\n"
    )
    assert secret.secrets is not None
    keys = {name: b64decode(text) for name, text in secret.secrets().items()}
    assert keys["id_rsa"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    private = load_pem_private_key(keys["id_rsa"], None)
    public = load_ssh_public_key(keys["id_rsa.pub"])
    assert private.public_key().public_numbers() == public.public_numbers()  # type: ignore[union-attr]
    assert keys["authorized_keys"] == keys["id_rsa.pub"]


def test_ssh_takes_the_users_own_keys_and_bad_ports_are_22() -> None:
    given = ["--ssh-private-key", "secret", "--ssh-public-key=known", "--ssh-port=99999"]
    secret = attached(make_job(plugins={"ssh": given}))["Secret"]
    assert secret.secrets is not None
    assert {b64decode(text) for text in secret.secrets().values()} == {b"secret", b"known"}
    assert b"Port 22\n" in b64decode(secret.manifest["data"]["config"])


@pytest.mark.parametrize(("folder", "mode"), [("/root/.ssh", 0o600), ("/home/me/.ssh", 0o644)])
def test_ssh_mounts_the_keys_into_every_container(folder: str, mode: int) -> None:
    job = make_job(task(spec=BOTH), plugins={"ssh": [f"--ssh-key-file-path={folder}"]})
    spec = dressed(job, "worker")["spec"]
    (volume,) = spec["volumes"]
    assert (volume["name"], volume["secret"]["defaultMode"]) == ("j-ssh", mode)
    assert [item["path"] for item in volume["secret"]["items"]] == [
        ".ssh/id_rsa",
        ".ssh/id_rsa.pub",
        ".ssh/authorized_keys",
        ".ssh/config",
    ]
    for container in (*spec["containers"], *spec["initContainers"]):
        assert container["volumeMounts"] == [{"name": "j-ssh", "mountPath": folder, "subPath": ".ssh"}]


# -- frameworks


def test_tensorflow_describes_the_cluster_and_the_pods_place_in_it() -> None:
    job = make_job(
        task("ps", 1), task("trainer", 2), plugins={"tensorflow": ["--worker=trainer", "--port=7"]}
    )
    config = env(dressed(job, "trainer", 1))["TF_CONFIG"]
    assert json.loads(config) == {
        "cluster": {"ps": ["j-ps-0.j:7"], "worker": ["j-trainer-0.j:7", "j-trainer-1.j:7"]},
        "task": {"type": "worker", "index": 1},
    }
    assert " " not in config


def test_tensorflow_leaves_a_single_pod_alone_and_calls_strangers_by_their_task() -> None:
    assert env(dressed(make_job(task("worker", 1), plugins={"tensorflow": []}), "worker")) == {}
    job = make_job(task("worker", 1), task("logger", 1), plugins={"tensorflow": []})
    config = json.loads(env(dressed(job, "logger"))["TF_CONFIG"])
    assert config["task"] == {"type": "logger", "index": 0}


def test_pytorch_tells_master_size_and_rank() -> None:
    job = make_job(task("master", 1), task("worker", 3), task("other", 1), plugins={"pytorch": []})
    common = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "23456", "WORLD_SIZE": "4"}
    assert env(dressed(job, "master")) == {**common, "RANK": "0"}
    assert env(dressed(job, "worker", 2)) == {**common, "RANK": "3"}
    assert env(dressed(job, "other")) == common
    (port,) = dressed(job, "worker")["spec"]["containers"][0]["ports"]
    assert port == {"name": "pytorchjob-port", "containerPort": 23456}


def test_pytorch_does_not_declare_a_port_twice_and_does_nothing_without_a_master() -> None:
    spec = {"containers": [{"name": "c", "ports": [{"containerPort": 23456}]}]}
    job = make_job(task("master", 1, spec=spec), plugins={"pytorch": []})
    assert len(dressed(job, "master")["spec"]["containers"][0]["ports"]) == 1
    alone = make_job(task("worker", 1), plugins={"pytorch": []})
    assert env(dressed(alone, "worker")) == {}


def test_pytorch_workers_wait_for_the_master_if_asked_to() -> None:
    waiting = ["--wait-master-enabled", "--wait-master-timeout=9", "--wait-master-image=tiny"]
    job = make_job(task("master", 1), task("worker", 1), plugins={"pytorch": waiting})
    (container,) = dressed(job, "worker")["spec"]["initContainers"]
    assert (container["name"], container["image"]) == ("wait-for-master", "tiny")
    script = container["command"][2]
    assert "nc -z j-master-0.j 23456" in script
    assert "/dev/tcp/j-master-0.j/23456" in script
    assert "-ge 9" in script
    assert "initContainers" not in dressed(job, "master")["spec"]


def test_waiting_for_the_master_ends_when_it_listens_and_is_told_meanwhile() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        plugins = {"pytorch": ["--wait-master-enabled", f"--port={port}", "--wait-master-timeout=0"]}
        job = make_job(task("master", 1), task("worker", 1), plugins=plugins)
        (container,) = dressed(job, "worker")["spec"]["initContainers"]
        script = container["command"][2].replace("j-master-0.j", "127.0.0.1")
        done = subprocess.run(("sh", "-c", script), capture_output=True, text=True, timeout=60, check=False)
    waiting = f"waiting for the master at 127.0.0.1:{port}, 0 seconds at most\n"
    assert (done.returncode, done.stdout) == (0, waiting)
    done = subprocess.run(("sh", "-c", script), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, f"{waiting}no answer from 127.0.0.1:{port} in 0 seconds\n")


def test_mpi_tells_the_master_its_workers() -> None:
    job = make_job(task("master", 1, spec=BOTH), task("worker", 2), plugins={"mpi": ["--port=2200"]})
    master = dressed(job, "master")
    for kind in ("containers", "initContainers"):
        assert env(master, kind) == {"MPI_HOST": "j-worker-0.j,j-worker-1.j"}
        assert master["spec"][kind][0]["ports"] == [{"name": "mpijob-port", "containerPort": 2200}]
    worker = dressed(job, "worker")
    assert env(worker) == {}
    assert worker["spec"]["containers"][0]["ports"][0]["containerPort"] == 2200


def test_mpi_without_workers_leaves_the_master_alone() -> None:
    job = make_job(task("master", 1), plugins={"mpi": []})
    assert "ports" not in dressed(job, "master")["spec"]["containers"][0]
    empty = make_job(task("master", 1), task("worker", 0), plugins={"mpi": []})
    assert env(dressed(empty, "master")) == {"MPI_HOST": ""}


def test_ray_starts_head_and_workers_and_puts_a_service_in_front() -> None:
    head = task("head", 1, spec={"containers": [{"name": "head"}, {"name": "side", "command": ["x"]}]})
    worker = task("worker", 2, spec={"containers": [{"name": "worker"}]})
    job = make_job(head, worker, plugins={"ray": ["--port=1", "--dashboardPort=2", "--clientPort=3"]})
    main, side = dressed(job, "head")["spec"]["containers"]
    assert main["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=1 --dashboard-port=2 --ray-client-server-port=3",
    ]
    assert [port["name"] for port in main["ports"]] == ["gcs", "dashboard", "client-server"]
    assert side["command"] == ["x"]
    (container,) = dressed(job, "worker", 1)["spec"]["containers"]
    assert container["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:1"]
    service = attached(job)["Service"]
    assert service.name == "j-head-svc"
    assert service.manifest["spec"]["selector"]["volcano.sh/task-spec"] == "head"
    assert [(port["port"], port["targetPort"]) for port in service.manifest["spec"]["ports"]] == [
        (1, "gcs"),
        (2, "dashboard"),
        (3, "client-server"),
    ]


def test_ray_without_a_head_says_so() -> None:
    with pytest.raises(PluginFailure, match="no task head"):
        dressed(make_job(plugins={"ray": []}), "worker")


def test_hcclrank_takes_the_rank_of_pytorch_or_counts() -> None:
    def rank(job: Job, name: str, index: int) -> str | None:
        return dressed(job, name, index)["metadata"]["annotations"].get("hccl/rankIndex")

    tasks = task("master", 1), task("worker", 2), task("other", 1)
    counted = make_job(*tasks, plugins={"hcclrank": []})
    assert [rank(counted, "master", 0), rank(counted, "worker", 1), rank(counted, "other", 0)] == [
        "0",
        "2",
        None,
    ]
    both = make_job(*tasks, plugins={"hcclrank": [], "pytorch": []})
    assert rank(both, "worker", 1) == "2"
    stated = task("worker", 1)
    stated["template"]["metadata"] = {"annotations": {"hccl/rankIndex": "7"}}
    assert rank(make_job(stated, plugins={"hcclrank": []}), "worker", 0) == "7"


# -- arguments and plugins of the users' own


@pytest.mark.parametrize(
    ("flags", "port", "ps", "problem"),
    [
        ([], 2222, "ps", ""),
        (["--port=1", "-ps", "x"], 1, "x", ""),
        (["--port", "1"], 1, "ps", ""),
        (["--port=1", "stray", "--ps=x"], 1, "ps", "unknown argument 'stray'"),
        (["--port=one", "--ps=x"], 2222, "ps", "is no"),
        (["--prot=1"], 2222, "ps", "did you mean"),
        (["--port"], 2222, "ps", "needs a value"),
        (["--", "--port=1"], 2222, "ps", ""),
    ],
)
def test_arguments_are_flags(flags: list[str], port: int, ps: str, problem: str) -> None:
    arguments, complaint = parse_flags(TensorFlowArguments, flags)
    assert (arguments.port, arguments.ps) == (port, ps)
    assert (problem in complaint) if problem else complaint == ""


@pytest.mark.parametrize(
    ("word", "value"),
    [("--inject-hosts-env=false", False), ("--inject-hosts-env=0", False), ("-inject-hosts-env", True)],
)
def test_a_switch_needs_no_value(word: str, value: bool) -> None:
    assert parse_flags(SvcArguments, [word])[0].hosts_env is value


def test_a_misspelt_method_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="did you mean 'dress'"):

        class Wrong(JobPlugin):
            name = "wrong"

            def dresss(self) -> None:
                """One s too many."""


def test_a_name_may_be_taken_once() -> None:
    class Mine(JobPlugin):
        name = "svc"

    with pytest.raises(ExtensionError, match="defined twice"):
        JobPlugins([Mine])


@pytest.mark.parametrize(
    ("raised", "text"), [(KeyError("oops"), "KeyError: 'oops'"), (SystemExit(3), "SystemExit: 3")]
)
def test_a_plugin_that_breaks_costs_its_job_alone_and_says_why(raised: BaseException, text: str) -> None:
    class Broken(JobPlugin):
        name = "broken"

        def dress(self, member: Member, pod: dict[str, Any]) -> None:
            raise raised

    simulated = SimulatedJob(make_job(plugins={"broken": []}), plugins=JobPlugins([Broken])).settle()
    assert simulated.phase == "Pending"
    assert simulated.recorded == [("PluginError", f"Execute plugin when job add failed, err: {text}")]
