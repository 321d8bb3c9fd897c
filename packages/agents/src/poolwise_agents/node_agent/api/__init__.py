"""Protocols between kubelets and plugins; `protoc` generates the Python modules from the .proto files in this folder."""
