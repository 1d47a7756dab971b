"""Prints a line for each tensor of a safetensors file: name, type, shape, SHA-256 of its bytes."""
import hashlib
import sys

import safetensors

with open(sys.argv[1], "rb") as file:
    tensors = safetensors.deserialize(file.read())
for name, tensor in sorted(tensors):
    shape = "x".join(str(size) for size in tensor["shape"])
    print(name, tensor["dtype"], shape, hashlib.sha256(tensor["data"]).hexdigest())
