"""What is written before a pod is bound, for the whole gang at once, and how it is taken back when that fails."""
