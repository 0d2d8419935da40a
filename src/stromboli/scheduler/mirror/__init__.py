"""The cluster as the scheduler sees it: watched objects applied to the model between cycles."""
