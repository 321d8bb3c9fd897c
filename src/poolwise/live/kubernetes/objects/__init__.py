"""Kubernetes objects, decoded with only the fields that scheduling reads; the Kubernetes API reference describes them."""
