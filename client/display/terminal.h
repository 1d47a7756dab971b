// The terminal that the client writes to: its size, text of its width and colours, lines that are
// redrawn in place, and Ctrl-C.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lengthwise::client {

struct TerminalSize {
  int width = 80;
  int height = 24;
};

// Asks the system on each call, so that resizing takes effect. Without a terminal: $COLUMNS, or 80
// by 24.
TerminalSize GetTerminalSize();

// Columns that UTF-8 text takes in a terminal. Escape sequences have no width.
int DisplayWidth(absl::string_view text);

// Cuts text (without escape sequences) to one line of at most `width` columns, which ends with "…"
// if it was cut. Newlines and tabs become spaces.
std::string Truncate(absl::string_view text, int width);

// Pads with spaces to `width` columns; longer text stays as it is.
std::string PadRight(absl::string_view text, int width);
std::string PadLeft(absl::string_view text, int width);

// `text` so many times.
std::string Repeat(absl::string_view text, int times);

// Breaks text at spaces, newlines and tabs into lines of at most `width` columns; every line after
// the first begins with `indent` spaces.
std::string Wrap(absl::string_view text, int width, int indent);

// Appends a line and its end, without trailing spaces.
void AppendLine(std::string& text, std::string line);

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

// Redraws the last lines of a terminal in place. Writes only the changed lines, in one write, to
// avoid flicker. Hides the cursor from the first update to Finish. The lines must be narrower than
// the terminal, and fewer than its height.
class LiveRegion {
 public:
  explicit LiveRegion(std::ostream& out) : out_(out) {}
  ~LiveRegion() { Finish(); }

  // `size` is the terminal's current size. After a change everything is redrawn.
  void Update(const std::vector<std::string>& lines, const TerminalSize& size);

  // Leaves the lines on the screen. Later output goes below them.
  void Finish();

 private:
  std::ostream& out_;
  std::vector<std::string> lines_;
  TerminalSize size_;
  bool active_ = false;
};

// While a guard exists, SIGINT, SIGTERM, SIGHUP and SIGPIPE are counted and do not end the process.
// Under nohup SIGHUP stays ignored, and so does SIGPIPE if it was. After a SIGPIPE (the reader of
// the output, such as `head`, has ended), it is ignored once the outermost guard is gone. For the
// main thread. Guards may be nested; all share one count.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Signals received since the outermost guard was created.
  int count() const;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_
