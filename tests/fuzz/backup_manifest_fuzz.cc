// The manifest of a backup, as a restore reads it.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "platform/files.h"
#include "server/storage/backup_manifest.h"
#include "tests/fuzz/must.h"

namespace {

// Deleted at the end of the process.
const std::string& Directory() {
  static const std::string* const directory = [] {
    // In memory if possible: thousands of inputs a second pass through the file.
    const std::string parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string name = parent + "/manifest_XXXXXX";
    lengthwise::Must(mkdtemp(name.data()) != nullptr, "a directory for the manifest");
    std::atexit([] { lengthwise::platform::DeleteTree(Directory()).IgnoreError(); });
    return new std::string(name);
  }();
  return *directory;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  std::FILE* file = std::fopen((Directory() + "/manifest.json").c_str(), "wb");
  Must(file != nullptr, "the manifest opens");
  // An empty input may have no address.
  Must(size == 0 || std::fwrite(data, 1, size, file) == size, "the manifest is written");
  std::fclose(file);
  const auto manifest = server::ReadManifest(Directory());
  if (!manifest.ok()) {
    Must(manifest.status().code() == absl::StatusCode::kDataLoss, "damage is DATA_LOSS");
    return 0;
  }
  for (const server::BackupManifest::Artifact& artifact : manifest->artifacts) {
    const std::string path = server::ArtifactPath("artifacts", artifact.id).value_or("//");
    Must(path.find("/../") == std::string::npos && path.find("//") == std::string::npos,
         "an artifact lies within the backup");
    Must(artifact.size_bytes >= 0, "sizes are not negative");
  }
  return 0;
}
