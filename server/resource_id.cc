#include "server/resource_id.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace lengthwise::server {

bool IsResourceId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxResourceIdBytes && id != "." && id != ".." &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains("_.+-=", absl::string_view(&c, 1));
         });
}

}  // namespace lengthwise::server
