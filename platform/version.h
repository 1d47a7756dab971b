// Identifies the build, for provenance, `--version` and the build_info metric.
#ifndef LENGTHWISE_PLATFORM_VERSION_H_
#define LENGTHWISE_PLATFORM_VERSION_H_

namespace lengthwise::platform {

// Semantic version of the programs.
inline constexpr char kVersion[] = "0.2.0";

// Version of the workers' API (proto/worker_service.proto). Raise it with every change that server
// and worker must make together: the server refuses workers with another version.
inline constexpr int kWorkerApiVersion = 3;

// Git revision of the checkout, with the suffix "-modified" if files differed; empty without git.
extern const char kSourceRevision[];

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_VERSION_H_
