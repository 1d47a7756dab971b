#include "server/coordination/length_buckets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lengthwise::server {
namespace {

int32_t Width(int32_t seen_up_to, int32_t longest) {
  const int32_t least = (longest + LengthBuckets::kMost - 1) / LengthBuckets::kMost;
  for (int32_t width = least; width <= std::min(3 * least, seen_up_to); ++width) {
    if (seen_up_to % width == 0) return width;
  }
  for (int32_t power = 1;; power *= 10) {
    for (const int32_t digit : {1, 2, 5}) {
      if (digit * power >= least) return digit * power;
    }
  }
}

}  // namespace

LengthBuckets::LengthBuckets(int32_t seen_up_to, int32_t longest)
    : longest_(std::max(longest, 1)), width_(Width(seen_up_to, longest_)) {}

std::string LengthBuckets::Label(int32_t length) const {
  const int32_t first = (std::clamp(length, 1, longest_) - 1) / width_ * width_ + 1;
  const int32_t last = first + width_ - 1;
  const int digits =
      static_cast<int>(absl::StrCat((longest_ + width_ - 1) / width_ * width_).size());
  if (width_ == 1) return absl::StrFormat("%0*d", digits, first);
  return absl::StrFormat("%0*d-%0*d", digits, first, digits, last);
}

}  // namespace lengthwise::server
