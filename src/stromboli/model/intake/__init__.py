"""How Kubernetes objects become part of the model."""
