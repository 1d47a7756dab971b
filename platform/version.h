// Identifies the build, for provenance, `--version` and the build_info metric.
#ifndef LENGTHWISE_PLATFORM_VERSION_H_
#define LENGTHWISE_PLATFORM_VERSION_H_

#include <string>

namespace lengthwise::platform {

// Semantic version of the programs.
inline constexpr char kVersion[] = "0.2.0";

// Version of the workers' API (proto/worker_service.proto). Raise it with every change that server
// and worker must make together: the server refuses workers with another version.
inline constexpr int kWorkerApiVersion = 6;

// Git revision of the checkout, with the suffix "-modified" if files differed; empty without git.
extern const char kSourceRevision[];

// Returns the first line of `PROGRAM --version`, which `lengthwise doctor` parses:
// "lengthwise_worker 0.1.0 (3b42ce7)", without the revision if it is unknown.
inline std::string VersionText(const std::string& program) {
  const std::string revision = kSourceRevision;
  return program + " " + kVersion + (revision.empty() ? "" : " (" + revision + ")");
}

// Returns another line of it: "built by GCC 12.2.0, optimized".
inline std::string BuildText() {
#ifdef __clang__
  std::string text = "built by " __VERSION__;
#else
  std::string text = "built by GCC " __VERSION__;
#endif
#ifdef NDEBUG
  text += ", optimized";
#endif
  return text;
}

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_VERSION_H_
