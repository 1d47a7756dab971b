#include "client/commands/published_keys.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace lengthwise::client {

std::vector<PublishedKey> PublishedKeys() {
  std::vector<PublishedKey> keys;
  for (const PublishedFile& file : PublishedFiles()) {
    const auto table = nlohmann::json::parse(file.json.begin(), file.json.end(), /*cb=*/nullptr,
                                             /*allow_exceptions=*/false);
    if (!table.is_object()) continue;
    const std::string paper = table.value("paper", "");
    // A file's name consists of its paper and its table.
    if (file.name.size() <= paper.size() + 1) continue;
    const absl::string_view own = file.name.substr(paper.size() + 1);
    keys.push_back({absl::StrCat(paper, "/", std::string(own)), table.value("title", "")});
  }
  std::sort(keys.begin(), keys.end(),
            [](const PublishedKey& a, const PublishedKey& b) { return a.key < b.key; });
  return keys;
}

}  // namespace lengthwise::client
