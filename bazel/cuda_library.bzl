"""CUDA sources, compiled by nvcc where there is one; where there is not, C++ sources that say so take their place."""

load("@cuda//:nvcc.bzl", "NVCC")

# Machine code for the A100 and H100/H200 generations, and PTX for what comes after.
_ARCHITECTURES = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]"

def cuda_library(name, srcs, hdrs, without_cuda, textual_hdrs = [], **kwargs):
    """A library of CUDA kernels with a C++ header.

    Args:
      name: the cc_library's name.
      srcs: one .cu file; it includes its headers by their path from the root.
      hdrs: headers without CUDA in them.
      without_cuda: .cc files that are compiled instead where there is no nvcc: the same functions, which report
        that they are not there.
      textual_hdrs: what srcs and hdrs include beside that.
      **kwargs: passed to the cc_library.
    """
    if not NVCC:
        native.cc_library(name = name, srcs = without_cuda, hdrs = hdrs, **kwargs)
        return
    archive = "lib%s_kernels.a" % name
    native.genrule(
        name = name + "_nvcc",
        srcs = srcs + hdrs + textual_hdrs,
        outs = [archive],
        cmd = "%s -O3 -std=c++20 -Xcompiler -fPIC -Werror all-warnings %s -I. -lib -o $@ %s" %
              (NVCC, _ARCHITECTURES, " ".join(["$(location %s)" % src for src in srcs])),
    )
    native.cc_import(
        name = name + "_kernels",
        hdrs = hdrs,
        static_library = archive,
    )
    deps = kwargs.pop("deps", [])
    native.cc_library(
        name = name,
        deps = deps + [":" + name + "_kernels", "@libtorch//:cudart"],
        **kwargs
    )
