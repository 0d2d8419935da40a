"""Commands are carried out once and go, whatever becomes of the requests that delete them."""

import asyncio

from stromboli.controllers.job.observed_state import DeleteCommand, SetStatus
from stromboli.kube.request import ApiError, Request
from tests.controllers.job.stage import policy, running
from tests.controllers.job.test_controller import at_work, command, phase, submitted
from tests.controllers.working import settled, until


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
            await until(lambda: not api.every("commands"))
            await settled(api, runner)
            assert (phase(api), refusals) == ("Aborted", [])
            assert api.find("jobs", "j", "team")["status"]["version"] == 1

    asyncio.run(story())


def test_a_command_that_was_carried_out_goes_before_the_status_names_another_cause() -> None:
    """Otherwise it would be carried out again by a controller that was stopped in between."""
    stage = running(policies=[policy("TerminateJob", "Unknown")]).ask("RestartJob")
    stage.write(stage.look().writes[0])
    stage.restart()
    assert (stage.phase, len(stage.commands)) == ("Restarting", 1)
    assert stage.group is not None
    stage.group.status.phase = "Unknown"
    first, second, *_ = stage.look().writes
    assert isinstance(first, DeleteCommand)
    assert isinstance(second, SetStatus)
    assert second.status.state.phase == "Terminating"


def test_a_command_that_nobody_knows_is_told_and_deleted_and_changes_nothing() -> None:
    stage = running()
    before = stage.job.status
    stage.ask("AbrtJob").settle()
    assert (stage.commands, stage.job.status) == ([], before)
    assert stage.events[-1] == (
        "Warning",
        "UnknownCommand",
        "Command c4 asks for 'AbrtJob', which nobody knows, so nothing is done; "
        "use AbortJob, ResumeJob, RestartJob, TerminateJob, CompleteJob",
    )
    assert not any(reason == "CommandIssued" for reason, _ in stage.told)
