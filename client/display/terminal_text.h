// Measures, cuts, pads, wraps and colours text for a terminal.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_TEXT_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::client {

// Columns that UTF-8 text takes in a terminal. Escape sequences have no width.
int DisplayWidth(absl::string_view text);

// Cuts text (without escape sequences) to one line of at most `width` columns, which ends with "…"
// if it was cut. Newlines and tabs become spaces.
std::string Truncate(absl::string_view text, int width);

// Pads with spaces to `width` columns; longer text stays as it is.
std::string PadRight(absl::string_view text, int width);
std::string PadLeft(absl::string_view text, int width);

// Breaks text at spaces, newlines and tabs into lines of at most `width` columns; every line after
// the first begins with `indent` spaces.
std::string Wrap(absl::string_view text, int width, int indent);

// Returns the text with its first ASCII letter in upper case.
std::string Capitalized(std::string text);

enum class Paint { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// The colours of series in a chart, in their order.
Paint SeriesPaint(int index);

// Colours text; leaves it unchanged if colours are off.
class Palette {
 public:
  explicit Palette(bool enabled) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }
  std::string operator()(Paint paint, absl::string_view text) const;

 private:
  bool enabled_;
};

// A bar of `width` columns, filled to `fraction` (clamped to 0 to 1) in steps of half a column:
// "━━━━━━╸─────". Only a fraction of 1 fills the last half column.
std::string ProgressBar(double fraction, int width, Paint paint, const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_TEXT_H_
