"""Where nvcc is: @cuda//:nvcc.bzl has NVCC, its path, or "" where there is none."""

def _cuda_repository_impl(ctx):
    nvcc = ctx.which("nvcc")
    ctx.file("BUILD.bazel", "")
    ctx.file("nvcc.bzl", "NVCC = %r\n" % (str(nvcc.realpath) if nvcc else ""))

cuda_repository = repository_rule(implementation = _cuda_repository_impl, environ = ["PATH"], local = True)
