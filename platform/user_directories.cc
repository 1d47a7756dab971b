#include "platform/user_directories.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace lengthwise::platform {
namespace {

std::optional<std::string> Directory(const char* variable, const char* below_home) {
  const char* base = std::getenv(variable);
  if (base != nullptr && base[0] == '/') return absl::StrCat(base, "/lengthwise");
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return std::nullopt;
  return absl::StrCat(home, below_home, "/lengthwise");
}

}  // namespace

std::optional<std::string> CacheDirectory() { return Directory("XDG_CACHE_HOME", "/.cache"); }
std::optional<std::string> DataDirectory() { return Directory("XDG_DATA_HOME", "/.local/share"); }
std::optional<std::string> StateDirectory() { return Directory("XDG_STATE_HOME", "/.local/state"); }

std::string ExpandHome(const std::string& path, const char* home) {
  if (path.rfind("~/", 0) != 0 || home == nullptr || *home == '\0') return path;
  return home + path.substr(1);
}

}  // namespace lengthwise::platform
