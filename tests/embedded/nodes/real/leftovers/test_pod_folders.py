import asyncio

from stromboli.embedded.nodes.real.leftovers.pod_folders import PodFolders


def test_folders_of_pods_that_are_gone_are_removed_and_no_others(tmp_path):
    for name in ("here", "gone", "left"):
        (tmp_path / name / "logs").mkdir(parents=True)
    (tmp_path / "file").touch()

    async def scenario():
        folders = PodFolders(tmp_path)
        folders.remove(tmp_path / "left")
        await folders.remove_others(lambda: {tmp_path / "here"})
        await folders.close()
        await PodFolders(tmp_path / "none").remove_others(set)

    asyncio.run(scenario())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "here"]
