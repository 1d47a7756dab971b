"""Generates and compiles C++ from .proto files with the system's protoc and gRPC plugin."""

load("//bazel:cc.bzl", "cc_library")

def grpc_cc_library(name, srcs, imports = [], deps = [], **kwargs):
    """C++ messages and services of `srcs`.

    Args:
      name: the cc_library's name.
      srcs: .proto files of this package.
      imports: .proto files of other targets that `srcs` import.
      deps: the grpc_cc_library targets of `imports`.
      **kwargs: passed to the cc_library.
    """
    outs = []
    for src in srcs:
        base = src[:-len(".proto")]
        outs += [base + extension for extension in [".pb.h", ".pb.cc", ".grpc.pb.h", ".grpc.pb.cc"]]
    native.genrule(
        name = name + "_generate",
        srcs = srcs + imports,
        outs = outs,
        cmd = "protoc -I. -I/usr/include --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin " +
              " ".join(["$(location %s)" % src for src in srcs]) +
              # gRPC's plugin copies comments; without them a changed comment compiles nothing again.
              " && sed -i '/^ *\\/\\//d' $(OUTS)",
    )
    cc_library(
        name = name,
        srcs = [out for out in outs if out.endswith(".cc")],
        hdrs = [out for out in outs if out.endswith(".h")],
        copts = ["-w"],  # generated code
        deps = deps + ["@system//:grpc", "@system//:protobuf"],
        **kwargs
    )
