"""Commands are carried out once and go, whatever becomes of the requests that delete them."""

import asyncio

from stromboli.controllers.job.observed_state import DeleteCommand, SetStatus
from stromboli.kube.request import ApiError, Request
from tests.controllers.job.simulated_job import policy, running
from tests.controllers.job.test_controller import at_work, command, phase, submitted
from tests.controllers.running import wait_until, wait_until_idle


def test_a_command_that_could_not_be_deleted_is_deleted_later() -> None:
    async def story() -> None:
        api = submitted()
        refusals = [ApiError(409, "Conflict", "changed"), ApiError(403, "Forbidden", "not now")]

        def refuse(request: Request) -> None:
            if request.method == "DELETE" and "/commands/" in request.path and refusals:
                raise refusals.pop()

        api.before = refuse
        async with at_work(api) as runner:
            command(api, "stop", "AbortJob")
            await wait_until(lambda: not api.every("commands"))
            await wait_until_idle(api, runner)
            assert (phase(api), refusals) == ("Aborted", [])
            assert api.find("jobs", "j", "team")["status"]["version"] == 1

    asyncio.run(story())


def test_an_event_is_recorded_once_though_the_writes_after_it_are_retried() -> None:
    async def story() -> None:
        api = submitted()
        async with at_work(api) as runner:
            await wait_until_idle(api, runner)
            conflicts = [ApiError(409, "Conflict", "changed")] * 3

            def refuse(request: Request) -> None:
                if request.method == "PATCH" and request.path.endswith("/j/status") and conflicts:
                    raise conflicts.pop()

            api.before = refuse
            command(api, "stop", "AbortJob")
            await wait_until(lambda: phase(api) == "Aborted")
            await wait_until_idle(api, runner)
            assert conflicts == []
        counts = {event["reason"]: event["count"] for event in api.every("events")}
        assert (counts["CommandIssued"], counts["ExecuteAction"]) == (1, 1)

    asyncio.run(story())


def test_a_command_of_another_namespace_does_nothing() -> None:
    async def story() -> None:
        api = submitted()
        async with at_work(api) as runner:
            await wait_until_idle(api, runner)
            before = phase(api)
            for namespace in ("other", "default"):
                command(api, "stop", "AbortJob", namespace=namespace)
            await wait_until_idle(api, runner)
            assert phase(api) == before

    asyncio.run(story())


def test_a_command_that_was_carried_out_goes_before_the_status_names_another_cause() -> None:
    """Otherwise it would be carried out again by a controller that was stopped in between."""
    simulated = running(policies=[policy("TerminateJob", "Unknown")]).ask("RestartJob")
    simulated.write(simulated.reconcile().writes[0])
    simulated.restart()
    assert (simulated.phase, len(simulated.commands)) == ("Restarting", 1)
    assert simulated.group is not None
    simulated.group.status.phase = "Unknown"
    first, second, *_ = simulated.reconcile().writes
    assert isinstance(first, DeleteCommand)
    assert isinstance(second, SetStatus)
    assert second.status.state.phase == "Terminating"


def test_a_command_that_nobody_knows_is_told_and_deleted_and_changes_nothing() -> None:
    simulated = running()
    before = simulated.job.status
    simulated.ask("AbrtJob").settle()
    assert (simulated.commands, simulated.job.status) == ([], before)
    assert simulated.events[-1] == (
        "Warning",
        "UnknownCommand",
        "Command c4 asks for 'AbrtJob', which nobody knows, so nothing is done; "
        "use AbortJob, ResumeJob, RestartJob, TerminateJob, CompleteJob",
    )
    assert not any(reason == "CommandIssued" for reason, _ in simulated.recorded)
