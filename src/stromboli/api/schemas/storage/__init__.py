"""What Kubernetes refuses in volumes, claims and objects of `storage.k8s.io` beyond fields and their types."""
