"""What Kubernetes refuses in objects of `resource.k8s.io` beyond fields and their types."""
