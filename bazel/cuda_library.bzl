"""CUDA sources, compiled by nvcc where there is one."""

load("@cuda//:nvcc.bzl", "NVCC")

# Machine code for the A100 and H100/H200 generations, and PTX for what comes after. No kernel uses what compute_90 adds, so its PTX
# would give the same machine code for the H100, after half as much time again.
_ARCHITECTURES = "-gencode arch=compute_80,code=[sm_80,sm_90,compute_80]"

# Machine code for the H100/H200 generation, and PTX, from which a driver makes that of others at a kernel's first launch. Takes
# half as long to compile.
ARCHITECTURES_OF_H100 = "-gencode arch=compute_80,code=[sm_90,compute_80]"

def cuda_library(name, srcs, hdrs, textual_hdrs = [], architectures = _ARCHITECTURES, **kwargs):
    """A library of CUDA kernels with a C++ header; of the header alone where there is no nvcc (models/kernels/cuda_devices.h).

    Args:
      name: the cc_library's name. The files of the target NAME_resources say, where there is nvcc, how many registers each
        kernel takes (output of `ptxas -v`).
      srcs: .cu files, each compiled by an action of its own; they include headers by their path from the root.
      hdrs: headers without CUDA in them.
      textual_hdrs: what srcs and hdrs include beside that.
      architectures: nvcc's options that say for which devices to compile.
      **kwargs: passed to the cc_library.
    """
    resources = []
    if not NVCC:
        native.cc_library(name = name, hdrs = hdrs, **kwargs)
    else:
        deps = kwargs.pop("deps", [])
        for src in srcs:
            part = src.replace(".cu", "_kernels")
            resources.append(part + ".txt")
            native.genrule(
                name = part + "_nvcc",
                srcs = [src] + hdrs + textual_hdrs,
                outs = ["lib%s.a" % part, part + ".txt"],
                cmd = "%s -O3 -std=c++20 -Xcompiler -fPIC -Werror all-warnings -Xptxas -v %s -I. -lib -o $(location lib%s.a) $(location %s) 2>$(location %s.txt) || { cat $(location %s.txt) >&2; exit 1; }" %
                      (NVCC, architectures, part, src, part, part),
            )
            native.cc_import(
                name = part,
                hdrs = hdrs,
                static_library = "lib%s.a" % part,
            )
            deps = deps + [":" + part]
        native.cc_library(
            name = name,
            deps = deps + ["@libtorch//:cudart"],
            **kwargs
        )
    native.filegroup(name = name + "_resources", srcs = resources)
