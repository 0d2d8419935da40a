"""Real nodes: the command of every container runs as a process of this machine. The image is not looked at.

A pod has a folder of its own, `PODS/NAMESPACE_NAME_UID`: `root` is where containers begin and where their volumes are
mounted (`/data` is `root/data`), `logs` has what they said. `guardian.py` sees to it that no process outlives us.
"""
