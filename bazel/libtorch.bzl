"""LibTorch, taken from $LIBTORCH_ROOT (the folder that holds lib/ and include/ of the Python package torch)."""

def _libtorch_impl(ctx):
    root = ctx.os.environ.get("LIBTORCH_ROOT", "")
    if not root:
        result = ctx.execute(["python3", "-c", "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"])
        if result.return_code:
            fail("No LibTorch: run deploy/install.sh, or set LIBTORCH_ROOT to the folder of the Python package torch.")
        root = result.stdout.strip()
    if not ctx.path(root + "/lib/libtorch_cpu.so").exists:
        fail("No LibTorch in %s: run deploy/install.sh." % root)
    ctx.symlink(root + "/lib", "lib")

    # torch ships an old protobuf's headers under include/google, which would shadow the system's.
    for entry in ctx.path(root + "/include").readdir():
        if entry.basename != "google":
            ctx.symlink(entry, "include/" + entry.basename)
    ctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "libtorch",
    hdrs = glob(["include/**/*.h", "include/**/*.hpp", "include/**/*.cuh"]),
    includes = ["include", "include/torch/csrc/api/include"],
    linkopts = [
        "-L%s/lib",
        # The folder of deploy/collect.sh: the build may be in a home directory that a service cannot read.
        "-Wl,-rpath,$$ORIGIN/../lib/lengthwise",
        "-Wl,-rpath,%s/lib",
        "-ltorch_cpu",
        "-lc10",
        # libtorch_cpu.so finds libcudart and libcupti beside it (Python packages of their own), at link time too.
        "-Wl,-rpath-link,%s/../nvidia/cu13/lib",
    ],
)

# The CUDA runtime that libtorch_cpu.so needs in any case, for kernels of our own.
cc_library(
    name = "cudart",
    linkopts = [
        "-L%s/../nvidia/cu13/lib",
        "-Wl,-rpath,$$ORIGIN/../lib/lengthwise",
        "-Wl,-rpath,%s/../nvidia/cu13/lib",
        "-l:libcudart.so.13",
    ],
)

# LibTorch's streams and memory of CUDA devices, which need no more than the CUDA runtime.
cc_library(
    name = "c10_cuda",
    linkopts = ["-L%s/lib", "-lc10_cuda"],
    deps = [
        ":cudart",
        ":libtorch",
    ],
)
""" % (root, root, root, root, root, root))

libtorch_repository = repository_rule(implementation = _libtorch_impl, environ = ["LIBTORCH_ROOT"], local = True)
