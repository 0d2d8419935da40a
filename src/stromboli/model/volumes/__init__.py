"""Volumes of pods: claims, the volumes that can serve them, what is promised of storage, limits of nodes."""
