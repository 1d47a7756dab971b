#include "tests/golden/golden_folder.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::golden {

std::string Folder(const std::string& name) {
  const char* root = std::getenv("LENGTHWISE_GOLDEN_DIR");
  return absl::StrCat(root != nullptr && *root != '\0' ? root : "tests/golden", "/", name);
}

std::vector<std::string> Files(const std::string& folder, std::vector<std::string> required) {
  std::set<std::string> names(required.begin(), required.end());
  std::error_code absent;
  for (const auto& file : std::filesystem::directory_iterator(Folder(folder), absent)) {
    if (file.path().extension() == ".json") names.insert(file.path().stem());
  }
  return {names.begin(), names.end()};
}

std::string TestName(std::string file_name) {
  for (char& c : file_name) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  return file_name;
}

std::string WhyNothingIsIn(const std::string& name) {
  std::error_code absent;
  for (const auto& file : std::filesystem::recursive_directory_iterator(Folder(name), absent)) {
    if (file.path().extension() == ".json") return "";
  }
  return absl::StrCat("no .json file in ", Folder(name),
                      " or below; LENGTHWISE_GOLDEN_DIR must be the absolute path of a folder that "
                      "holds ",
                      name, "/, laid out as tests/golden/README.md says");
}

std::string DataFolder() {
  namespace fs = std::filesystem;
  std::error_code absent;
  if (const char* given = std::getenv("LENGTHWISE_DATA_DIR"); given != nullptr && *given != '\0') {
    return fs::is_directory(given, absent) ? given : "";
  }
  // A test sees symbolic links to the checkout's files.
  const fs::path file = fs::canonical("tests/golden/golden_folder.h", absent);
  if (absent) return "";
  const fs::path folder = file.parent_path() / "../../../shared/data";
  return fs::is_directory(folder, absent) ? folder.lexically_normal().string() : "";
}

}  // namespace lengthwise::golden
