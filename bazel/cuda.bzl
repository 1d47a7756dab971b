"""Finds CUDA's compiler: in $CUDA_HOME/bin, on the PATH, or in /usr/local/cuda/bin, where toolkits put it. @cuda//:nvcc.bzl has NVCC, its path, and HEADERS, the targets of the headers beside it; both are
empty where there are none."""

_HEADERS = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)
"""

def _nvcc(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "")
    candidates = [ctx.path(home + "/bin/nvcc")] if home else []
    on_path = ctx.which("nvcc")
    if on_path:
        candidates.append(on_path)
    candidates.append(ctx.path("/usr/local/cuda/bin/nvcc"))
    for candidate in candidates:
        if candidate.exists:
            return candidate
    return None

def _cuda_repository_impl(ctx):
    nvcc = _nvcc(ctx)
    include = nvcc.realpath.dirname.dirname.get_child("include") if nvcc else None
    # Only a toolkit's own folder: system headers must not come before the compiler's.
    has_headers = include != None and str(include) != "/usr/include" and include.get_child("cuda_runtime_api.h").exists
    if has_headers:
        ctx.symlink(include, "include")
    ctx.file("BUILD.bazel", _HEADERS if has_headers else "")
    ctx.file("nvcc.bzl", "NVCC = %r\nHEADERS = %r\n" % (
        str(nvcc.realpath) if nvcc else "",
        ["@cuda//:headers"] if has_headers else [],
    ))

cuda_repository = repository_rule(implementation = _cuda_repository_impl, environ = ["CUDA_HOME", "PATH"], local = True)
