"""Generates and compiles C++ from .proto files with the system's protoc and gRPC plugin."""

load("//bazel:cc.bzl", "cc_library")

def grpc_cc_library(name, srcs):
    """C++ messages and services of `srcs`.

    Args:
      name: the cc_library's name.
      srcs: .proto files of this package, which import each other and those of the system.
    """
    outs = [
        src[:-len(".proto")] + extension
        # Sources with gRPC's headers are compiled together.
        for extension in [".pb.h", ".pb.cc", ".grpc.pb.h", ".grpc.pb.cc"]
        for src in srcs
    ]
    native.genrule(
        name = name + "_generate",
        srcs = srcs,
        outs = outs,
        cmd = "protoc -I. -I/usr/include --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin $(SRCS)" +
              # gRPC's plugin copies comments; without them a changed comment compiles nothing again. These names of
              # protoc's occur in every file, and files are compiled together.
              " && for out in $(OUTS); do file=$$(basename $$out | tr . _);" +
              " sed -i -E '/^ *\\/\\//d; s/\\b(schemas|file_default_instances)\\b/\\1_'$$file/g $$out; done",
    )
    cc_library(
        name = name,
        srcs = [out for out in outs if out.endswith(".cc")],
        hdrs = [out for out in outs if out.endswith(".h")],
        copts = ["-w"],  # generated code
        # Other precompiled headers contain these messages.
        precompiled = "messages",
        deps = ["@system//:grpc", "@system//:protobuf"],
    )
