#include "client/display/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace lengthwise::client {

TerminalSize GetTerminalSize() {
  TerminalSize size;
  winsize answer = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &answer) == 0 && answer.ws_col > 0 && answer.ws_row > 0) {
    size.width = answer.ws_col;
    size.height = answer.ws_row;
    return size;
  }
  const char* columns = std::getenv("COLUMNS");
  int width = 0;
  if (columns != nullptr && absl::SimpleAtoi(columns, &width) && width >= 20) size.width = width;
  return size;
}

namespace {

// A code point, or an escape sequence, which has no width.
struct Glyph {
  size_t bytes = 1;
  int width = 1;
};

int CodePointWidth(uint32_t c) {
  if (c == '\n' || c == '\t') return 1;  // Truncate prints them as spaces
  if (c < 0x20 || (c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200F)) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                    (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

Glyph FirstGlyph(absl::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte == 0x1B && text.size() > 1 && text[1] == '[') {
    size_t end = 2;
    while (end < text.size() && (text[end] < 0x40 || text[end] > 0x7E)) ++end;
    return {std::min(end + 1, text.size()), 0};
  }
  const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
  if (length > text.size()) return {text.size(), 1};
  uint32_t code_point = length == 1 ? byte : byte & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) code_point = code_point << 6 | (text[i] & 0x3F);
  return {length, CodePointWidth(code_point)};
}

}  // namespace

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    width += glyph.width;
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

std::string Truncate(absl::string_view lines, int width) {
  const std::string text_on_one_line = absl::StrReplaceAll(lines, {{"\n", " "}, {"\t", " "}});
  absl::string_view text = text_on_one_line;
  if (DisplayWidth(text) <= width) return text_on_one_line;
  if (width <= 0) return "";
  std::string result;
  int used = 0;
  while (!text.empty()) {
    const Glyph glyph = FirstGlyph(text);
    if (used + glyph.width > width - 1) break;
    used += glyph.width;
    absl::StrAppend(&result, text.substr(0, glyph.bytes));
    text.remove_prefix(glyph.bytes);
  }
  return result + "…";
}

std::string PadRight(absl::string_view text, int width) {
  return absl::StrCat(text, std::string(std::max(0, width - DisplayWidth(text)), ' '));
}

std::string PadLeft(absl::string_view text, int width) {
  return absl::StrCat(std::string(std::max(0, width - DisplayWidth(text)), ' '), text);
}

std::string Repeat(absl::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) absl::StrAppend(&result, text);
  return result;
}

std::string Wrap(absl::string_view text, int width, int indent) {
  std::string result;
  int column = 0;
  const std::vector<std::string> words =
      absl::StrSplit(std::string(text), absl::ByAnyChar(" \n\t"), absl::SkipEmpty());
  for (const std::string& word : words) {
    const int word_width = DisplayWidth(word);
    if (column > indent && column + 1 + word_width > width) {
      absl::StrAppend(&result, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!result.empty()) {
      result += ' ';
      ++column;
    }
    absl::StrAppend(&result, word);
    column += word_width;
    if (result.size() == word.size()) column += indent;  // the first line is indented by the caller
  }
  return result;
}

Paint SeriesPaint(int index) {
  static constexpr std::array<Paint, 6> kPaints = {Paint::kCyan,  Paint::kYellow, Paint::kMagenta,
                                                   Paint::kGreen, Paint::kBlue,   Paint::kRed};
  return kPaints[index % kPaints.size()];
}

std::string Palette::operator()(Paint paint, absl::string_view text) const {
  if (!enabled_ || paint == Paint::kPlain || text.empty()) return std::string(text);
  static constexpr std::array<const char*, 9> kCodes = {"0",  "1",  "2",  "31", "32",
                                                        "33", "34", "35", "36"};
  return absl::StrCat("\x1b[", kCodes[static_cast<int>(paint)], "m", text, "\x1b[0m");
}

void AppendLine(std::string& text, std::string line) {
  absl::StripTrailingAsciiWhitespace(&line);
  absl::StrAppend(&text, line, "\n");
}

std::string ProgressBar(double fraction, int width, Paint paint, const Palette& palette) {
  if (width <= 0) return "";
  if (!(fraction > 0)) fraction = 0;  // also NaN
  fraction = std::min(fraction, 1.0);
  int halves = static_cast<int>(std::floor(fraction * 2 * width));
  if (fraction < 1) halves = std::min(halves, 2 * width - 1);
  const std::string done = absl::StrCat(Repeat("━", halves / 2), halves % 2 == 1 ? "╸" : "");
  return absl::StrCat(palette(paint, done),
                      palette(Paint::kDim, Repeat("─", width - (halves + 1) / 2)));
}

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
