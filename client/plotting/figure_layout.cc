#include "client/plotting/figure_layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/rendering/text.h"

namespace lengthwise::client {
namespace {

constexpr double kMargin = 14;
constexpr double kGap = 6;          // between texts, and between texts and frames
constexpr double kColumnGap = 18;   // between panels side by side
constexpr double kWideGap = 36;     // where the last tick's label of one is beside the next's first
constexpr double kTickLabels = 20;  // below a frame
constexpr double kLegendLine = 22;
constexpr double kLegendGap = 24;
constexpr double kColorBar = 16;
// Panels smaller than this show nothing.
constexpr double kLeastWidth = 70;
constexpr double kLeastHeight = 50;

int Rows(const Figure& figure) {
  return (static_cast<int>(figure.panels.size()) + figure.columns - 1) / figure.columns;
}

bool IsSingle(const Figure& figure) { return figure.panels.size() == 1; }

bool IsScatter(const Figure& figure) {
  return figure.x.ticks == Axis::Ticks::kNone && !figure.has_maps();
}

// The frame that a panel has when nobody says how large the picture is to be.
Rectangle NaturalFrame(const Figure& figure) {
  if (figure.has_maps()) return {.width = IsSingle(figure) ? 460.0 : 190.0, .height = 0};
  if (IsScatter(figure)) return {.width = IsSingle(figure) ? 460.0 : 190.0, .height = 0};
  if (IsSingle(figure)) return {.width = 760, .height = 420};
  if (figure.panels.size() <= 6) return {.width = 330, .height = 210};
  return {.width = 250, .height = 160};
}

std::vector<LegendEntry> LegendEntries(const Figure& figure) {
  std::vector<LegendEntry> entries;
  std::set<std::string> names;
  bool shaded = false;
  bool reference = false;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      if (!series.name.empty() && names.insert(series.name).second) {
        entries.push_back({LegendEntry::Kind::kSeries, series.name, &series});
      }
    }
    shaded |= panel.shaded.has_value();
    reference |= !panel.references.empty();
  }
  // A single panel has room to say it in place.
  if (!IsSingle(figure) && shaded) {
    entries.push_back({LegendEntry::Kind::kShade, figure.shaded_label});
  }
  if (!IsSingle(figure) && reference) {
    entries.push_back({LegendEntry::Kind::kReference, "random guess"});
  }
  return entries;
}

// Space around and between the frames, all but the legend and caption, whose height depends on the
// width.
struct Chrome {
  double left = kMargin;
  double right = kMargin;
  double top = kMargin;
  // Above and below each row of frames.
  double above_row = 0;
  double below_row = 0;
};

Chrome MakeChrome(const Figure& figure) {
  Chrome chrome;
  if (!figure.title.empty()) chrome.top += kTitleText + 2 * kGap;
  int title_lines = 0;
  for (const std::string& title : figure.row_titles) {
    const std::vector<std::string> lines = absl::StrSplit(title, '\n');
    title_lines = std::max(title_lines, static_cast<int>(lines.size()));
  }
  chrome.left += title_lines * (kText + kGap);
  if (!figure.y.label.empty()) chrome.left += kText + 2 * kGap;
  if (figure.has_maps()) {
    chrome.left += TextWidth("1000", kSmallText) + kGap;
    chrome.right += kColorBar + kColumnGap + TextWidth("0.00", kSmallText) + kText + 3 * kGap;
  } else if (figure.y.ticks == Axis::Ticks::kPercent) {
    chrome.left += TextWidth("100 %", kSmallText) + kGap;
  } else if (figure.y.ticks != Axis::Ticks::kNone) {
    chrome.left += TextWidth("0.0001", kSmallText) + kGap;
  }
  for (const Panel& panel : figure.panels) {
    if (!panel.title.empty()) chrome.above_row = kText + kGap;
  }
  if (IsSingle(figure)) {
    if (figure.panels[0].shaded.has_value()) chrome.above_row += kSmallText + kGap;
    double widest = 0;
    for (const Reference& reference : figure.panels[0].references) {
      widest = std::max(widest, TextWidth(reference.label, kSmallText) + kGap);
    }
    chrome.right += widest;
  }
  // Half of the last tick's label.
  if (figure.x.ticks != Axis::Ticks::kNone) chrome.right += TextWidth("500", kSmallText) / 2;
  const bool x_ticks = figure.x.ticks != Axis::Ticks::kNone || figure.has_maps();
  chrome.below_row = x_ticks ? kTickLabels + 1.5 * kGap : 2 * kGap;
  return chrome;
}

// The widths of the legend's columns, row by row, when it has so many.
std::vector<double> LegendColumns(const std::vector<LegendEntry>& entries, size_t columns) {
  std::vector<double> widths(columns, 0);
  for (size_t i = 0; i < entries.size(); ++i) {
    const double width = kLegendSample + kGap + TextWidth(entries[i].name, kText) + kLegendGap;
    widths[i % columns] = std::max(widths[i % columns], width);
  }
  return widths;
}

// Places the legend from `top` on, in as many columns as fit; returns where it ends.
double PlaceLegend(double left, double right, double top, std::vector<LegendEntry>& entries) {
  if (entries.empty()) return top;
  size_t columns = entries.size();
  std::vector<double> widths;
  for (;; --columns) {
    widths = LegendColumns(entries, columns);
    const double all = std::accumulate(widths.begin(), widths.end(), 0.0);
    if (columns == 1 || all - kLegendGap <= right - left) break;
  }
  const size_t rows = (entries.size() + columns - 1) / columns;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto column = static_cast<std::ptrdiff_t>(i % columns);
    entries[i].x = std::accumulate(widths.begin(), widths.begin() + column, left);
    entries[i].y = top + (static_cast<double>(i / columns) + 0.5) * kLegendLine;
  }
  return top + static_cast<double>(rows) * kLegendLine + kGap;
}

std::vector<std::string> CaptionLines(const Figure& figure, double width) {
  const std::string caption = absl::StrCat(figure.caption, " ", figure.band_caption);
  const int characters = std::max(20, static_cast<int>(width / TextWidth("x", kSmallText)));
  std::string text = Wrap(caption, characters, 0);
  return absl::StrSplit(text, '\n', absl::SkipWhitespace());
}

// The size at which the text is at most so wide, at most `size`.
double FittingSize(const std::string& text, double size, double width) {
  return std::min(size, size * width / std::max(1.0, TextWidth(text, size)));
}

}  // namespace

double TextWidth(const std::string& text, double size) { return 0.58 * size * DisplayWidth(text); }

absl::StatusOr<FigureLayout> LayOut(const Figure& figure, int width, int height) {
  if (figure.panels.empty()) return absl::InvalidArgumentError("the figure has no panels");
  const Chrome chrome = MakeChrome(figure);
  const int rows = Rows(figure);
  const int columns = figure.columns;
  const bool square = figure.has_maps() || IsScatter(figure);
  const Rectangle natural = NaturalFrame(figure);

  FigureLayout layout;
  const bool x_ticks = figure.x.ticks != Axis::Ticks::kNone;
  const double gap = x_ticks && !figure.has_maps() ? kWideGap
                     : x_ticks                     ? 1.4 * kColumnGap
                                                   : kColumnGap;
  const double between_columns = (columns - 1) * gap;
  double frame_width = natural.width;
  if (width > 0) frame_width = (width - chrome.left - chrome.right - between_columns) / columns;
  // A square figure in a picture of which only the height was said has the frames that fit it; its
  // legend and caption are at most as wide as the picture then is, so begin with the width.
  layout.width = width > 0 ? width
                           : static_cast<int>(std::ceil(chrome.left + chrome.right +
                                                        between_columns + columns * frame_width));
  layout.legend = LegendEntries(figure);
  const double legend_left = chrome.left;
  const double x_label = figure.x.label.empty() ? 0 : kText + kGap;
  const double legend_height = PlaceLegend(legend_left, layout.width - kMargin, 0, layout.legend) +
                               (layout.legend.empty() ? 0 : kGap);
  const std::vector<std::string> caption =
      CaptionLines(figure, layout.width - chrome.left - kMargin);
  const double caption_height = static_cast<double>(caption.size()) * (kSmallText + 4);
  const double fixed_height = chrome.top + rows * (chrome.above_row + chrome.below_row) + x_label +
                              legend_height + caption_height + kMargin;

  double frame_height = square      ? frame_width
                        : width > 0 ? natural.height * std::min(1.5, frame_width / natural.width)
                                    : natural.height;
  if (height > 0) frame_height = (height - fixed_height) / rows;
  if (frame_width < kLeastWidth || frame_height < kLeastHeight) {
    const double least_width = chrome.left + chrome.right + between_columns + columns * kLeastWidth;
    return absl::InvalidArgumentError(absl::StrCat(
        "the figure does not fit: it needs at least ", std::ceil(least_width),
        " pixels of width and, that wide, ", std::ceil(fixed_height + rows * kLeastHeight),
        " of height; leave --width and --height out for what suits it"));
  }
  if (square) frame_width = frame_height = std::min(frame_width, frame_height);
  layout.height =
      height > 0 ? height : static_cast<int>(std::ceil(fixed_height + rows * frame_height));

  const double row_height = chrome.above_row + frame_height + chrome.below_row;
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    const double column = static_cast<double>(i % columns);
    const double row = static_cast<double>(i / columns);
    layout.panels.push_back({.left = chrome.left + column * (frame_width + gap),
                             .top = chrome.top + row * row_height + chrome.above_row,
                             .width = frame_width,
                             .height = frame_height});
    const Rectangle& frame = layout.panels.back();
    const Panel& panel = figure.panels[i];
    if (!panel.title.empty()) {
      layout.texts.push_back({panel.title, frame.left + frame.width / 2,
                              chrome.top + row * row_height + kText / 2,
                              FittingSize(panel.title, kText, frame.width + kColumnGap / 2),
                              PlacedText::Align::kCenter});
    }
  }
  const Rectangle& first = layout.panels.front();
  if (!figure.title.empty()) {
    layout.texts.push_back({figure.title, layout.width / 2.0, kMargin + kTitleText / 2,
                            FittingSize(figure.title, kTitleText, layout.width - 2 * kMargin),
                            PlacedText::Align::kCenter});
  }
  if (IsSingle(figure) && figure.panels[0].shaded.has_value()) {
    layout.texts.push_back(
        {figure.shaded_label, first.left, first.top - kSmallText / 2 - 5, kSmallText});
  }
  const double frames_bottom = chrome.top + rows * row_height - chrome.below_row;
  const double frames_right =
      layout.panels[std::min<size_t>(columns, figure.panels.size()) - 1].right();
  double x = kMargin + kText / 2;
  if (!figure.row_titles.empty()) {
    size_t lines = 1;
    for (int row = 0; row < rows && row < static_cast<int>(figure.row_titles.size()); ++row) {
      const std::vector<std::string> parts = absl::StrSplit(figure.row_titles[row], '\n');
      lines = std::max(lines, parts.size());
      for (size_t line = 0; line < parts.size(); ++line) {
        const Rectangle& frame = layout.panels[static_cast<size_t>(row * columns)];
        layout.texts.push_back({parts[line],
                                kMargin + kText / 2 + static_cast<double>(line) * (kText + kGap),
                                frame.top + frame.height / 2,
                                FittingSize(parts[line], kText, frame.height + chrome.above_row),
                                PlacedText::Align::kCenter, true});
      }
    }
    x += static_cast<double>(lines) * (kText + kGap);
  }
  if (!figure.y.label.empty()) {
    layout.texts.push_back({figure.y.label, x, (first.top + frames_bottom) / 2, kText,
                            PlacedText::Align::kCenter, true});
  }
  double y = frames_bottom + chrome.below_row;
  if (!figure.x.label.empty()) {
    layout.texts.push_back({figure.x.label, (first.left + frames_right) / 2, y + kText / 2, kText,
                            PlacedText::Align::kCenter});
    y += kText + kGap;
  }
  if (!layout.legend.empty()) {
    y = PlaceLegend(legend_left, layout.width - kMargin, y + kGap, layout.legend);
  }
  for (const std::string& line : caption) {
    layout.texts.push_back({line, chrome.left, y + kSmallText / 2, kSmallText});
    y += kSmallText + 4;
  }
  if (figure.has_maps()) {
    layout.color_bar = {.left = frames_right + kColumnGap,
                        .top = first.top,
                        .width = kColorBar,
                        .height = std::min(frames_bottom - first.top, 2 * frame_height)};
    layout.texts.push_back(
        {figure.map_label,
         layout.color_bar.right() + TextWidth("0.00", kSmallText) + 2 * kGap + kText / 2,
         layout.color_bar.top + layout.color_bar.height / 2, kSmallText, PlacedText::Align::kCenter,
         true});
  }
  return layout;
}

}  // namespace lengthwise::client
