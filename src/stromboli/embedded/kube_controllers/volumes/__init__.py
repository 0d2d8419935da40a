"""Volumes and their claims: bound to each other, made, protected while they are in use, and reclaimed."""
