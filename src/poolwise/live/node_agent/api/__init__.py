"""What kubelets and plugins say to each other; the Python modules are made from the .proto files beside them by `protoc`."""
