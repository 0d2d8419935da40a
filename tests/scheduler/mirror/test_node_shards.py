"""NodeShards: ours are those that we should have and nobody else still uses."""

from __future__ import annotations

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.node_shard import NodeShard, NodeShardSpec, NodeShardStatus
from stromboli.engine.decisions import ShardStatus
from stromboli.model.intake.object_intake import Intake
from stromboli.scheduler.mirror.node_shards import NodeShards


def shard(name: str, desired: str, in_use: str = "", to_add: str = "") -> NodeShard:
    status = NodeShardStatus(tuple(in_use.split()), tuple(to_add.split()))
    return NodeShard(ObjectMeta(name), NodeShardSpec(tuple(desired.split())), status)


class Story:
    def __init__(self) -> None:
        self.intake = Intake()
        self.shards = NodeShards("mine", strict=True)

    def hear(self, *shards: NodeShard) -> list[ShardStatus]:
        for shard in shards:
            self.intake.put(shard)
        return self.shards.refresh(self.intake.cluster)  # type: ignore[return-value]

    @property
    def nodes(self) -> str:
        shard = self.intake.cluster.shard
        return " ".join(sorted(shard.nodes)) if shard else "all"


def test_a_node_is_ours_once_its_former_owner_has_let_it_go() -> None:
    story = Story()
    theirs = shard("theirs", "n3", in_use="n2 n3")
    assert story.hear(shard("mine", "n1 n2"), theirs) == [ShardStatus("mine", ("n1",), ("n2",), ())]
    assert story.nodes == "n1"
    assert story.hear(shard("theirs", "n3", in_use="n3")) == [ShardStatus("mine", ("n1", "n2"), (), ())]
    assert story.nodes == "n1 n2"


def test_nothing_is_written_that_stands_there_already() -> None:
    story = Story()
    assert story.hear(shard("mine", "n2 n1 n3", in_use="n1 n2", to_add="n3"), shard("theirs", "", "n3")) == []
    assert story.hear() == []


def test_without_a_shard_of_ours_there_are_no_nodes_until_it_comes() -> None:
    story = Story()
    assert story.hear(shard("theirs", "n1")) == []
    assert story.nodes == ""
    story.hear(shard("mine", "n2"))
    assert story.nodes == "n2"


def test_a_shard_that_vanishes_leaves_its_nodes() -> None:
    story = Story()
    story.hear(shard("mine", "n1"))
    story.intake.drop(shard("mine", "n1"))
    assert story.hear() == []
    assert story.nodes == "n1"
