// Text in a terminal: how wide it is, how it is coloured.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_TEXT_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::client {

// Columns that UTF-8 text takes in a terminal. Escape sequences take none.
int DisplayWidth(absl::string_view text);

// Cuts text (without escape sequences) to one line of at most `width` columns, with "…" in the last
// where something was cut off. Newlines and tabs become spaces.
std::string Truncate(absl::string_view text, int width);

// Pads with spaces to `width` columns; longer text stays as it is.
std::string PadRight(absl::string_view text, int width);
std::string PadLeft(absl::string_view text, int width);

// Breaks text at spaces, newlines and tabs into lines of at most `width` columns; every line after
// the first begins with `indent` spaces.
std::string Wrap(absl::string_view text, int width, int indent);

// With its first letter, of ASCII, in upper case.
std::string Capitalized(std::string text);

enum class Paint { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// The colours of series in a chart, in their order.
Paint SeriesPaint(int index);

// Colours text, or leaves it as it is where colours are off.
class Palette {
 public:
  explicit Palette(bool enabled) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }
  std::string operator()(Paint paint, absl::string_view text) const;

 private:
  bool enabled_;
};

// A bar of `width` columns, filled to `fraction` (0 to 1, others are taken for the nearer of the
// two) in steps of half a column: "━━━━━━╸─────". Only a fraction of 1 fills the last half.
std::string ProgressBar(double fraction, int width, Paint paint, const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_TEXT_H_
