#include "client/plotting/gnuplot_looks.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace lengthwise::client {
namespace {

// Okabe and Ito's colours without the yellow, which is faint on white.
constexpr std::array<absl::string_view, kSeriesColors> kColors = {
    "0072B2", "D55E00", "009E73", "CC79A7", "E69F00", "56B4E9", "000000"};
// gnuplot's point types: circle, square, triangle, diamond, triangle upside down, pentagon; filled
// for solid lines, open for dashed ones.
constexpr std::array<int, 6> kFilledMarkers = {7, 5, 9, 13, 11, 15};

}  // namespace

std::string Color(const SeriesStyle& style, int transparency) {
  const absl::string_view rgb = kColors[static_cast<size_t>(style.color) % kColors.size()];
  return transparency == 0 ? absl::StrCat("'#", rgb, "'")
                           : absl::StrFormat("'#%02X%s'", transparency, rgb);
}

int PointType(const SeriesStyle& style) {
  const int filled = kFilledMarkers[static_cast<size_t>(style.marker) % kFilledMarkers.size()];
  return style.dashed ? filled - 1 : filled;
}

std::string LineLook(const SeriesStyle& style) {
  const std::string dashes = absl::StrCat("(", kDash, ",", kDashGap, ")");
  return absl::StrCat("lc rgb ", Color(style), " lw 2 dt ", style.dashed ? dashes : "solid");
}

std::string FontOption(double size) { return absl::StrFormat("font ',%.4g'", size); }

std::string GnuplotString(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}, {"\n", " "}, {"\r", " "}}), "'");
}

std::string Margins(const Rectangle& frame, const FigureLayout& layout) {
  return absl::StrFormat(
      "set lmargin at screen %.6f; set rmargin at screen %.6f; set tmargin at screen %.6f; set "
      "bmargin at screen %.6f\n",
      frame.left / layout.width, frame.right() / layout.width, 1 - frame.top / layout.height,
      1 - frame.bottom() / layout.height);
}

}  // namespace lengthwise::client
