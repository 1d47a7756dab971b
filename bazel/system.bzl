"""Libraries that the operating system's packages provide, found through pkg-config."""

_PACKAGES = {
    "absl": "absl_base absl_status absl_statusor absl_strings absl_str_format absl_time absl_span absl_flat_hash_map absl_synchronization absl_cord",
    "benchmark": "benchmark",
    "cjose": "cjose",
    "crypto": "libcrypto",
    "gmp": "gmp",
    "grpc": "grpc++",
    "gtest": "gtest_main gmock",
    "highway": "libhwy",
    "nghttp2": "libnghttp2",
    "prometheus": "prometheus-cpp-core",
    "protobuf": "protobuf",
    "pugixml": "pugixml",
    "sqlite3": "sqlite3",
    "ssl": "libssl libcrypto",
    "tcmalloc": "libtcmalloc_minimal",
    "yaml_cpp": "yaml-cpp",
}

# Headers only, in /usr/include: a target to depend on, so that a BUILD file says what is used.
_HEADER_ONLY = ["cli11", "curl_headers", "nlohmann_json", "random123"]

def _system_libraries_impl(ctx):
    lines = ['package(default_visibility = ["//visibility:public"])']
    for name, packages in _PACKAGES.items():
        result = ctx.execute(["pkg-config", "--libs"] + packages.split(" "))
        if result.return_code:
            fail("pkg-config finds no %s (deploy/install.sh installs it): %s" % (packages, result.stderr))
        flags = {flag: None for flag in result.stdout.strip().split(" ") if flag}.keys()
        lines.append("cc_library(name = %r, linkopts = %r)" % (name, flags))
    for name in _HEADER_ONLY:
        lines.append("cc_library(name = %r)" % name)
    ctx.file("BUILD.bazel", "\n".join(lines))

system_libraries = repository_rule(implementation = _system_libraries_impl, local = True)
