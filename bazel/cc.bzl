"""C++ libraries, programs and tests whose sources are compiled several at a time.

Most of the time of a compilation goes into headers: a file of sixty lines has 230,000 lines of Abseil, Protocol
Buffers and the standard library before it. So a target's sources are included into a few files ("unity build"), each
of which parses those headers, and instantiates their templates, once. `--define=unity=off` compiles every source by
itself, as tests/run.sh --long=single_files does to find missing includes.

Two sources of one target must not have the same name in their anonymous namespaces.
"""

# Options for tests and the headers precompiled for them, which fit only what is compiled alike. -O1 takes 1.4 times as long,
# for code that runs once. What is tested is compiled as ever.
OF_TESTS = select({
    "//bazel:optimized_tests": [],
    "//conditions:default": ["-O0", "-U_FORTIFY_SOURCE"],
})

# Sources in one compilation. More save time in a full build, and cost time when one of them is changed.
_SOURCES_AT_A_TIME = 12

def _is_compiled(source):
    return source.endswith(".cc")

def _include_sources_impl(ctx):
    included = ctx.attr.precompiled + [source.short_path for source in ctx.files.srcs]
    ctx.actions.write(ctx.outputs.out, "".join(["#include \"%s\"\n" % path for path in included]))

_include_sources = rule(
    implementation = _include_sources_impl,
    attrs = {
        "out": attr.output(),
        "precompiled": attr.string_list(),
        "srcs": attr.label_list(allow_files = [".cc"]),
    },
)

def _split(sources, at_a_time):
    """Splits sources, in their order, into the fewest groups, all of about the same length."""
    count = (len(sources) + at_a_time - 1) // at_a_time
    return [sources[len(sources) * i // count:len(sources) * (i + 1) // count] for i in range(count)]

def _precompiled(deps, tests = False):
    """Returns the name in bazel/precompiled that suits a target with these dependencies, or none."""
    suffix = "_test" if tests or "@system//:gtest" in deps else ""
    for library, name in [
        ("@libtorch//:libtorch", "tensors"),
        ("@system//:grpc", "calls"),
        ("@system//:protobuf", "messages"),
        ("@system//:absl", "messages"),
    ]:
        if library in deps:
            return name + suffix
    return "messages_test" if suffix else None

def _together(name, srcs, deps, apart, precompiled, suffix, copts, filegroups = [], at_a_time = _SOURCES_AT_A_TIME):
    """Declares the files that include srcs. Returns the attributes srcs, textual_hdrs, deps and copts of the target."""
    compiled = [source for source in srcs if _is_compiled(source)]
    groups = _split([source for source in compiled if source not in apart], at_a_time) + ([apart] if apart else [])
    groups += [[filegroup] for filegroup in filegroups]
    compiled += filegroups
    if precompiled and precompiled.endswith("_test"):
        copts = copts + OF_TESTS
    if not compiled or (len(groups) == len(compiled) and not precompiled):
        return dict(srcs = srcs + filegroups, textual_hdrs = [], deps = deps, copts = copts)
    outs = ["%s_unity/%d%s.cc" % (name, index, suffix) for index in range(len(groups))]
    for out, group in zip(outs, groups):
        _include_sources(
            name = out[:-len(".cc")],
            srcs = group,
            out = out,
            precompiled = ["bazel/precompiled/%s.h" % precompiled] if precompiled else [],
            tags = ["manual"],
        )
    return dict(
        srcs = [source for source in srcs if not _is_compiled(source)] + select({
            "//bazel:unity_off": compiled,
            "//conditions:default": outs,
        }),
        textual_hdrs = select({
            "//bazel:unity_off": [],
            "//conditions:default": compiled,
        }),
        deps = deps + select({
            "//bazel:unity_off": [],
            "//conditions:default": ["//bazel/precompiled:" + precompiled] if precompiled else [],
        }),
        copts = copts,
    )

def cc_library(
        name,
        srcs = [],
        deps = [],
        apart = [],
        filegroups = [],
        textual_hdrs = [],
        precompiled = None,
        at_a_time = _SOURCES_AT_A_TIME,
        copts = [],
        **kwargs):
    """A native cc_library, compiled as above.

    Args:
      name: the target's name.
      srcs: sources and private headers.
      deps: libraries.
      apart: those of srcs that are not compiled together with others: //tests/faults replaces them at link time.
      filegroups: more sources; those of a filegroup are compiled together.
      textual_hdrs: as of the native rule.
      precompiled: name in bazel/precompiled, if not the one that suits deps.
      at_a_time: sources in one compilation.
      copts: options of the compiler.
      **kwargs: passed on.
    """
    attributes = _together(name, srcs, deps, apart, precompiled or _precompiled(deps), "", copts, filegroups, at_a_time)
    attributes["textual_hdrs"] = textual_hdrs + attributes["textual_hdrs"]
    native.cc_library(name = name, **dict(kwargs, **attributes))

def _program(rule, name, srcs, deps, precompiled, suffix, testonly, copts = [], local_defines = [], **kwargs):
    attributes = _together(name, srcs, deps, [], precompiled, suffix, copts)
    native.cc_library(
        name = name + "_sources",
        testonly = testonly,
        alwayslink = True,
        tags = ["manual"],
        local_defines = local_defines,
        **attributes
    )
    rule(
        name = name,
        testonly = testonly,
        deps = [":%s_sources" % name],
        **kwargs
    )

def cc_binary(name, srcs, deps, testonly = None, **kwargs):
    """A native cc_binary, compiled as above."""
    _program(native.cc_binary, name, srcs, deps, _precompiled(deps), "", testonly, **kwargs)

def cc_test(name, srcs, deps, **kwargs):
    """A native cc_test, compiled as above."""
    _program(native.cc_test, name, srcs, deps, _precompiled(deps, tests = True), "_test", True, **kwargs)

def cc_tests(name, tests, deps, files = [], size = "small", data = [], env = {}, args = [], tags = [], **kwargs):
    """A program with the tests of several files, and for each file a target that runs the tests in it.

    A test whose program must be its own (it has a main function, replaces functions of the C library, or needs other
    options of the compiler) is a cc_test.

    Args:
      name: the program's name.
      tests: names of the targets without "_test"; the file of each is NAME_test.cc. Or a dictionary, whose values are
        attributes of file_test for that target.
      deps: libraries of the program.
      files: more files of the program; file_test declares the targets that run them.
      size: size of the targets.
      data: data files of the targets.
      env: environment of the targets.
      args: arguments of the targets.
      tags: tags of the targets.
      **kwargs: attributes of the program.
    """
    attributes = _together(
        name,
        [test + "_test.cc" for test in tests] + files,
        deps,
        [],
        _precompiled(deps, tests = True),
        "_test",
        kwargs.get("copts", []),
    )
    native.cc_library(
        name = name + "_sources",
        testonly = True,
        alwayslink = True,
        tags = ["manual"],
        **dict(kwargs, **attributes)
    )
    native.cc_binary(
        name = name,
        testonly = True,
        deps = [
            ":%s_sources" % name,
            "//bazel/testing:main",
        ],
        tags = ["manual"],
    )
    for test in tests:
        attributes = dict(size = size, env = env, args = args, tags = tags)
        own = dict(tests[test]) if type(tests) == "dict" else {}
        attributes["data"] = data + own.pop("data", [])
        attributes.update(own)
        file_test(
            name = test + "_test",
            program = name,
            file = test + "_test.cc",
            **attributes
        )

def file_test(name, program, file, args = [], data = [], **kwargs):
    """Runs the tests of one file of a cc_tests program.

    Args:
      name: the target's name.
      program: name of the cc_tests.
      file: the file, of this folder.
      args: arguments for the program.
      data: data files.
      **kwargs: attributes of the sh_test.
    """
    native.sh_test(
        name = name,
        srcs = ["//bazel/testing:run_tests_of_file.sh"],
        args = ["$(rootpath :%s)" % program, native.package_name() + "/" + file] + args,
        data = data + [":" + program],
        **kwargs
    )
