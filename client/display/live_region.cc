#include "client/display/live_region.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/display/terminal_text.h"

namespace lengthwise::client {
namespace {

constexpr char kHideCursor[] = "\x1b[?25l";
constexpr char kShowCursor[] = "\x1b[?25h";
// Synchronized output: the terminal shows the text between these sequences at once. Terminals
// without support ignore them.
constexpr char kBeginUpdate[] = "\x1b[?2026h";
constexpr char kEndUpdate[] = "\x1b[?2026l";
constexpr char kClearToEndOfLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";

std::string Up(int lines) { return lines > 0 ? absl::StrCat("\x1b[", lines, "A") : ""; }

}  // namespace

void LiveRegion::Update(const std::vector<std::string>& lines, const TerminalSize& size) {
  const bool resized = active_ && (size.width != size_.width || size.height != size_.height);
  if (active_ && !resized && lines == lines_) return;
  std::string text = kBeginUpdate;
  if (!active_) absl::StrAppend(&text, kHideCursor);
  if (resized) {
    // A narrower terminal has wrapped long lines. A lower one has scrolled the upper lines out of
    // reach.
    int rows = 0;
    for (const std::string& line : lines_) {
      rows += std::max(1, (DisplayWidth(line) + size.width - 1) / std::max(1, size.width));
    }
    absl::StrAppend(&text, "\r", Up(std::min(rows, size.height - 1)), kClearBelow);
    lines_.clear();
  } else {
    absl::StrAppend(&text, Up(static_cast<int>(lines_.size())));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i < lines_.size() && lines_[i] == lines[i]) {
      absl::StrAppend(&text, "\n");
    } else {
      absl::StrAppend(&text, "\r", lines[i], kClearToEndOfLine, "\n");
    }
  }
  if (lines.size() < lines_.size()) absl::StrAppend(&text, kClearBelow);
  absl::StrAppend(&text, kEndUpdate);
  out_ << text << std::flush;
  lines_ = lines;
  size_ = size;
  active_ = true;
}

void LiveRegion::Finish() {
  if (!active_) return;
  out_ << kShowCursor << std::flush;
  active_ = false;
  lines_.clear();
}

}  // namespace lengthwise::client
