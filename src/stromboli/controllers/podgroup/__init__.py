"""PodGroups for pods that no Volcano job made. `grouping` says what a group looks like, `controller` makes it."""
