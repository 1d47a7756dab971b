// What was built: for provenance, `--version` and the build_info metric.
#ifndef LENGTHWISE_PLATFORM_VERSION_H_
#define LENGTHWISE_PLATFORM_VERSION_H_

namespace lengthwise::platform {

// Semantic version of the programs.
inline constexpr char kVersion[] = "0.2.0";

// Version of the workers' API (proto/worker_service.proto): raised with every change that server
// and worker must make together. The server refuses workers of another one.
inline constexpr int kWorkerApiVersion = 3;

// Git revision of the checkout, with "-modified" behind it where files differed from it; empty
// without git.
extern const char kSourceRevision[];

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_VERSION_H_
