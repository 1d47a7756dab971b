// The form of an experiment's or a trial's id. One definition for all code that accepts ids or
// makes names of them, so that no part refuses an id that another accepted.
#ifndef LENGTHWISE_SERVER_STORAGE_RESOURCE_ID_H_
#define LENGTHWISE_SERVER_STORAGE_RESOURCE_ID_H_

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lengthwise::server {

inline constexpr size_t kMaxResourceIdBytes = 512;

// True for 1 to 512 of the characters A-Z, a-z, 0-9, "_", ".", "+", "-" and "=", except "." and
// "..". Ids of grids look like "bucket_sort-encoder-relative_max_position=256-lr0.001-seed0".
inline bool IsResourceId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxResourceIdBytes && id != "." && id != ".." &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains("_.+-=", absl::string_view(&c, 1));
         });
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_RESOURCE_ID_H_
