#include "client/display/progress_bar.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace lengthwise::client {

std::string ProgressBar(double fraction, int width, Paint paint, const Palette& palette) {
  if (width <= 0) return "";
  if (!(fraction > 0)) fraction = 0;  // also not-a-number
  fraction = std::min(fraction, 1.0);
  int halves = static_cast<int>(std::floor(fraction * 2 * width));
  if (fraction < 1) halves = std::min(halves, 2 * width - 1);
  std::string done;
  for (int i = 0; i < halves / 2; ++i) absl::StrAppend(&done, "━");
  if (halves % 2 == 1) absl::StrAppend(&done, "╸");
  std::string left;
  for (int i = (halves + 1) / 2; i < width; ++i) absl::StrAppend(&left, "─");
  return absl::StrCat(palette(paint, done), palette(Paint::kDim, left));
}

}  // namespace lengthwise::client
