"""Where commands for queues count, unlike in Volcano: docs/deviations.md."""

import asyncio

from stromboli.controllers.queue.controller import QueueController
from tests.controllers.queue.test_queue_controller import command, states, world
from tests.controllers.running import running_controllers, wait_until_idle


def test_a_command_for_a_queue_counts_in_the_namespace_default_alone() -> None:
    """In Volcano rights on commands in any namespace are rights on all queues."""

    async def run() -> None:
        api = world("shared", "other")
        command(api, "CloseQueue", "shared", namespace="team")
        command(
            api,
            "CloseQueue",
            "other",
            1,
            uid=api.find("queues", "other")["metadata"]["uid"],
            namespace="team",
        )
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            await runner.recorder.flush()
            assert states(api) == {"root": "Open", "shared": "Open", "other": "Open"}
            assert api.every("commands") == []
            first, second = sorted(api.every("events"), key=lambda event: event["message"], reverse=True)
            assert (
                (first["type"], first["reason"])
                == ("Warning", second["reason"])
                == ("Warning", "CommandRefused")
            )
            about = {"kind": "Command", "namespace": "team", "name": "closequeue-shared-0"}
            assert about.items() <= first["involvedObject"].items()
            assert first["metadata"]["namespace"] == "team"
            assert first["message"] == (
                'Command closequeue-shared-0 is for queue "shared" and is in namespace "team", so nothing is done; '
                'create it in namespace "default", as `vcctl queue operate` does'
            )
            command(api, "CloseQueue", "shared", 2)
            await wait_until_idle(api, runner)
            assert states(api)["shared"] == "Closed"

    asyncio.run(run())
