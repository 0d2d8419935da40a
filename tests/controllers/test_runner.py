"""Controllers at work: one bad object stops nobody, failures are recorded, a quiet runner writes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable

import pytest

from stromboli.api.types.scheduling import Queue
from stromboli.controllers import reconciler
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.options import Options
from stromboli.controllers.queue.controller import QueueController
from stromboli.controllers.recorder import Recorder
from stromboli.controllers.volcano_controllers import CONTROLLERS
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import running_controllers, wait_until, wait_until_idle


class Marking(Controller[str]):
    """Puts a mark on every queue, but for those that ask for trouble."""

    name = "queue-controller"
    workers = 2
    max_retries = 2

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.queues = self.watch(Queue, self._changed)
        self.tried: Counter[str] = Counter()

    def _changed(self, before: Queue | None, now: Queue | None) -> Iterable[str]:
        return [now.name] if now is not None else []

    async def sync(self, key: str) -> float | None:
        self.tried[key] += 1
        queue = self.queues.get(key)
        if key.startswith("bad"):
            raise ValueError("this one is hopeless")
        if queue is not None and "marked" not in queue.metadata.labels:
            self.queues.mutated(
                await self.context.writer.patch(queue, {"metadata": {"labels": {"marked": "yes"}}})
            )
        return 3600.0

    def gave_up(self, key: str, error: Exception) -> None:
        queue = self.queues.get(key)
        assert queue is not None
        self.context.recorder.warning(queue, "Hopeless", f"gave up: {error}")


class Broken(Marking):
    name = "gc-controller"

    def __init__(self, context: Context) -> None:
        raise RuntimeError("cannot be set up")


class Blind(Marking):
    """Needs what it may not see."""

    name = "pg-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = self.watch(Pod)


def queue(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"weight": 1}}


def marked(api: InMemoryApi) -> set[str]:
    return {
        queue["metadata"]["name"]
        for queue in api.every("queues")
        if "marked" in queue["metadata"].get("labels", {})
    }


def test_every_object_is_put_right_once_and_then_nothing_is_written() -> None:
    async def run() -> None:
        api = InMemoryApi()
        for number in range(5):
            api.put("queues", queue(f"q{number}"))
        async with running_controllers(api, Marking) as runner:
            await wait_until_idle(api, runner)
            assert marked(api) == {f"q{number}" for number in range(5)}
            assert len(api.writes) == 5
            api.put("queues", queue("late"))
            await wait_until(lambda: "late" in marked(api))
            await wait_until_idle(api, runner)
            assert len(api.writes) == 6

    asyncio.run(run())


def test_one_hopeless_object_is_told_of_and_stops_nobody() -> None:
    async def run() -> None:
        api = InMemoryApi()
        for name in ("bad", "good", "other"):
            api.put("queues", queue(name))
        async with running_controllers(api, Marking) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
            marking = runner.controllers[0]
            assert isinstance(marking, Marking)
            assert marking.tried["bad"] == 3
            assert marked(api) == {"good", "other"}
            assert api.events == [("Hopeless", "gave up: this one is hopeless")]
            event = api.every("events")[0]
            assert event["involvedObject"]["apiVersion"] == "scheduling.volcano.sh/v1beta1"
            assert event["source"] == {"component": "vc-controller-manager"}

    asyncio.run(run())


def test_what_we_gave_up_is_tried_again_after_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler, "GIVE_UP_PAUSE", 0.05)

    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", queue("bad"))
        async with running_controllers(api, Marking) as runner:
            marking = runner.controllers[0]
            assert isinstance(marking, Marking)
            await wait_until(lambda: marking.tried["bad"] > 4)

    asyncio.run(run())


class Refused(Marking):
    """Fails as if a quota refused its pods, with another name every time."""

    max_retries = -1
    failure = "exceeded quota: small"

    async def sync(self, key: str) -> float | None:
        self.tried[key] += 1
        raise ApiError(403, "Forbidden", f'pods "{key}-{self.tried[key]}" is forbidden: {self.failure}')


@pytest.mark.parametrize(("interval", "several"), [(3600.0, False), (0.0, True)])
def test_a_failure_is_logged_when_it_is_new_and_then_only_now_and_then(
    interval: float, several: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reconciler, "REFUSAL_PAUSE", 0.0)
    monkeypatch.setattr(reconciler, "LOG_INTERVAL", interval)

    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", queue("web"))
        async with running_controllers(api, Refused) as runner:
            refused = runner.controllers[0]
            assert isinstance(refused, Refused)
            await wait_until(lambda: refused.tried["web"] > 3)

    with caplog.at_level(logging.WARNING, "stromboli.controllers.reconciler"):
        asyncio.run(run())
    lines = [record.getMessage() for record in caplog.records]
    assert "is forbidden: exceeded quota: small; it is tried again" in lines[0]
    assert (len(lines) > 1) == several


def test_a_refused_write_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", queue("web"))
        async with running_controllers(api, Refused) as runner:
            work = runner.controllers[0].queue
            monkeypatch.setattr(work, "add_after", lambda key, pause: pauses.append(pause))
            work.add("web")
            await wait_until(lambda: bool(pauses))

    asyncio.run(run())
    assert pauses[0] >= 1.0


def test_lost_answers_and_conflicts_only_delay() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", queue("a"))
        troubles = [
            NoResponse("lost"),
            ApiError(409, "Conflict", "changed"),
            ApiError(503, "Unavailable", "busy"),
        ]

        def trouble(request: Request) -> None:
            if request.method == "PATCH" and troubles:
                raise troubles.pop()

        api.after = trouble
        async with running_controllers(api, Marking) as runner:
            await wait_until(lambda: not troubles or "a" in marked(api))
            await wait_until_idle(api, runner)
            assert marked(api) == {"a"}

    asyncio.run(run())


def test_a_controller_that_cannot_be_set_up_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", queue("a"))
        async with running_controllers(api, Broken, Marking) as runner:
            assert [controller.name for controller in runner.controllers] == ["queue-controller"]
            await wait_until(lambda: marked(api) == {"a"})

    asyncio.run(run())
    assert "gc-controller could not be set up" in caplog.text


def test_a_controller_that_cannot_see_waits_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        api = InMemoryApi()
        listing = api.list

        async def forbidden(resource, namespace="", **query):  # type: ignore[no-untyped-def]
            if resource.plural == "pods":
                raise ApiError(403, "Forbidden", "pods is forbidden")
            return await listing(resource, namespace, **query)

        api.list = forbidden  # type: ignore[method-assign]
        api.put("queues", queue("a"))
        async with running_controllers(api, Blind, Marking) as runner:
            await wait_until(lambda: marked(api) == {"a"})
            blind = runner.controllers[0]
            assert isinstance(blind, Blind)
            assert not blind.tried
            assert runner.unsynced == ["pods.core/v1"]

    caplog.set_level(logging.CRITICAL)
    asyncio.run(run())


def test_a_deposed_leader_writes_nothing_more() -> None:
    async def run() -> None:
        api = InMemoryApi()
        leads = True
        api.put("queues", queue("a"))
        async with running_controllers(api, Marking, write_time_left=lambda: 60.0 * leads) as runner:
            await wait_until_idle(api, runner)
            assert marked(api) == {"a"}
            leads = False
            api.put("queues", queue("b"))
            await wait_until_idle(api, runner)
            assert marked(api) == {"a"}

    asyncio.run(run())


def test_only_the_controllers_that_are_asked_for_run() -> None:
    async def run() -> None:
        api = InMemoryApi()
        async with running_controllers(
            api, Marking, Blind, options=Options(controllers=("pg-controller",))
        ) as runner:
            assert [controller.name for controller in runner.controllers] == ["pg-controller"]

    asyncio.run(run())


def test_a_controller_that_this_version_does_not_have_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with running_controllers(
            InMemoryApi(), *CONTROLLERS, options=Options(controllers=("*", "colocation-config-controller"))
        ):
            pass

    asyncio.run(run())
    assert "colocation-config-controller is asked for, and does not exist" in caplog.text


def test_a_feature_that_is_off_takes_its_controller_with_it() -> None:
    async def run() -> None:
        gates = (("VolcanoJobSupport", False), ("CronVolcanoJobSupport", False))
        options = Options(controllers=("*",), feature_gates=gates)
        async with running_controllers(InMemoryApi(), *CONTROLLERS, options=options) as runner:
            made = {controller.name for controller in runner.controllers}
            assert {controller.name for controller in CONTROLLERS} - made == {
                "job-controller",
                "cronjob-controller",
            }

    asyncio.run(run())


def test_memory_is_kept_for_our_pods_alone() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put(
            "pods", {"metadata": {"name": "ours", "namespace": "n"}, "spec": {"schedulerName": "volcano"}}
        )
        api.put(
            "pods", {"metadata": {"name": "theirs", "namespace": "n"}, "spec": {"schedulerName": "other"}}
        )
        job = {"volcano.sh/job-name": "j"}
        api.put(
            "pods",
            {
                "metadata": {"name": "of-a-job", "namespace": "n", "annotations": job},
                "spec": {"schedulerName": "other"},
            },
        )
        async with running_controllers(api, Blind) as runner:
            await wait_until_idle(api, runner)
            assert sorted(pod.name for pod in runner.context.store(Pod)) == ["of-a-job", "ours"]

    asyncio.run(run())


def test_metrics_and_events_that_fail_stop_no_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("cannot convert float infinity to integer")

    async def story() -> tuple[list[str], bytes]:
        api = InMemoryApi()
        monkeypatch.setattr(Recorder, "_enqueue", fail)
        async with running_controllers(api, QueueController) as runner:
            for metric in (runner.metrics.sync, runner.metrics.writes, *runner.metrics.groups.values()):
                monkeypatch.setattr(metric, "labels", fail)
            api.put("queues", queue("a"))
            await wait_until_idle(api, runner)
            runner.recorder.normal(runner.controllers[0].queues.get("a"), "Reason", "message")
            return [api.find("queues", "a")["status"]["state"]], runner.metrics.text()

    states, page = asyncio.run(story())
    assert states == ["Open"]
    for part in ("sync metrics", "write metrics", "queue metrics", "events"):
        assert f'stromboli_telemetry_failures_total{{part="{part}"}}'.encode() in page


class Idle(Marking):
    """Has nothing to do for any queue."""

    async def sync(self, key: str) -> float | None:
        self.tried[key] += 1
        return None


def test_others_have_their_turn_while_thousands_of_keys_have_nothing_to_do() -> None:
    async def run() -> None:
        async with running_controllers(InMemoryApi(), Idle) as runner:
            idle = runner.controllers[0]
            assert isinstance(idle, Idle)
            await wait_until(lambda: runner.idle)
            for number in range(2000):
                idle.queue.add(str(number))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert 0 < len(idle.tried) < 100
            await wait_until(lambda: len(idle.tried) == 2000)

    asyncio.run(run())


class Hanging(Marking):
    """Hangs at every queue whose name says so."""

    workers = 2
    patience = 0.01

    async def sync(self, key: str) -> float | None:
        if key.startswith("hangs"):
            self.tried[key] += 1
            await asyncio.Event().wait()
        return await super().sync(key)


def test_keys_that_hang_delay_no_other_key() -> None:
    async def run() -> None:
        api = InMemoryApi()
        for number in range(10):
            api.put("queues", queue(f"hangs-{number}"))
        async with running_controllers(api, Hanging) as runner:
            hanging = runner.controllers[0]
            assert isinstance(hanging, Hanging)
            await wait_until(lambda: len(hanging.tried) == 10)
            api.put("queues", queue("other"))
            await wait_until(lambda: marked(api) == {"other"})
            assert {hanging.tried[f"hangs-{number}"] for number in range(10)} == {1}

    asyncio.run(run())


def test_no_more_workers_are_kept_than_there_should_be() -> None:
    """After slow syncs."""

    async def run() -> None:
        async with running_controllers(InMemoryApi(), Slow) as runner:
            slow = runner.controllers[0]
            assert isinstance(slow, Slow)
            for number in range(20):
                slow.queue.add(str(number))
            await wait_until(lambda: len(slow.tried) == 20)
            assert slow.most > slow.workers
            await wait_until(lambda: slow.at_work == 0 and len(slow._workers) == slow.workers)

    asyncio.run(run())


class Slow(Marking):
    """Takes longer for each key than it has patience."""

    patience = 0.01
    at_work = most = 0

    async def sync(self, key: str) -> float | None:
        self.tried[key] += 1
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        await asyncio.sleep(0.1)
        self.at_work -= 1
        return None
