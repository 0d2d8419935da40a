"""Nodes and HyperNodes as the scheduler sees them, with what pods hold there: what pages about both compute."""
