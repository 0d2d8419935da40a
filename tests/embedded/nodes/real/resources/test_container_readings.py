"""What containers have used, by the files of a cgroup."""

from stromboli.embedded.nodes.real.resources.cgroups import ContainerCgroup
from stromboli.embedded.nodes.real.resources.container_readings import ProcessPlace, read_containers
from stromboli.embedded.nodes.usage.process_usage import Reading


def test_a_container_with_a_cgroup_is_read_there(tmp_path):
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 10\ninactive_file 2000\n")
    places = {
        "run": ProcessPlace(2**22 + 1, ContainerCgroup(tmp_path)),
        "gone": ProcessPlace(2**22 + 2, ContainerCgroup(tmp_path / "gone")),
        "ended": ProcessPlace(2**22 + 3),
    }
    assert read_containers(places) == {"run": Reading(2.5, 3000)}
