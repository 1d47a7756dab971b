"""A fuzz target: a function that takes any bytes and must survive them."""

load("//bazel:cc.bzl", "cc_library")

def fuzz_target(name, deps, **kwargs):
    """NAME_fuzz.cc with LLVMFuzzerTestOneInput and its inputs in corpus/NAME.

    NAME_test runs the corpus and mutations of it in the ordinary tests, with any compiler;
    NAME_fuzz searches with libFuzzer: bazel build --config=fuzz //tests/fuzz:NAME_fuzz.
    """
    cc_library(
        name = name + "_target",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        deps = deps,
        alwayslink = True,
    )
    native.cc_test(
        name = name + "_test",
        size = "small",
        env = {"LENGTHWISE_CORPUS": "tests/fuzz/corpus/" + name},
        data = native.glob(["corpus/" + name + "/*"]),
        deps = [
            ":" + name + "_target",
            ":corpus_test",
        ],
    )
    native.cc_binary(
        name = name + "_fuzz",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name + "_target"],
    )
