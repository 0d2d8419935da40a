"""Real nodes: the command of every container runs as a process of this machine. The image is ignored.

A pod has a folder of its own, `PODS/NAMESPACE_NAME_UID`: `root` is where containers start and where their volumes are
mounted (`/data` is `root/data`), `logs` has their output. `process_guardian` makes sure that no process outlives us.
"""
