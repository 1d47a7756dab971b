#include "client/plotting/terminal_figure.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/rendering/chart.h"

namespace lengthwise::client {
namespace {

constexpr int kRows = 12;
constexpr int kMostWidth = 120;

// From values to the heights 0 to 1 of a chart, and back.
struct Heights {
  double low;
  double high;
  bool logarithmic;

  double Of(double y) const {
    if (logarithmic) return std::log(y / low) / std::log(high / low);
    return (y - low) / (high - low);
  }
  double Value(double height) const {
    return logarithmic ? low * std::pow(high / low, height) : low + height * (high - low);
  }
};

Chart MakeChart(const Figure& figure, const Panel& panel) {
  const auto [low, high] = figure.y.range.value_or(std::make_pair(0.0, 1.0));
  const Heights heights{low, high, figure.y.scale == Axis::Scale::kLog10};
  Chart chart;
  chart.x_label = figure.x.label;
  for (const Series& series : panel.series) {
    // Thin lines behind the others have no room here.
    if (series.faint && series.name.empty()) continue;
    ChartSeries& curve = chart.series.emplace_back();
    curve.name = series.name;
    for (const SeriesPoint& point : series.points) {
      curve.points.emplace_back(point.x, heights.Of(point.y));
    }
  }
  if (panel.shaded.has_value() && figure.x.range.has_value() &&
      panel.shaded->second < figure.x.range->second) {
    chart.split = panel.shaded->second;
    chart.split_labels = {"seen in training", "not seen"};
  }
  if (figure.y.ticks != Axis::Ticks::kPercent) {
    chart.height_label = [heights](double height) {
      return absl::StrFormat("%.2g", heights.Value(height));
    };
  }
  return chart;
}

}  // namespace

absl::StatusOr<std::string> RenderFigure(const Figure& figure, int width, const Palette& palette) {
  if (figure.has_maps() || figure.x.scale != Axis::Scale::kLinear ||
      figure.x.ticks == Axis::Ticks::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("a terminal cannot show the figure ", figure.kind,
                     "; it can show those of accuracies, errors and loss"));
  }
  std::string text = absl::StrCat(palette(Paint::kBold, figure.title), "\n");
  for (const Panel& panel : figure.panels) {
    absl::StrAppend(&text, "\n", panel.title, " · ", figure.y.label, "\n",
                    MakeChart(figure, panel).Render(std::min(width, kMostWidth), kRows, palette));
    for (const Reference& reference : panel.references) {
      absl::StrAppend(&text, palette(Paint::kDim, reference.label), "\n");
    }
  }
  if (!figure.caption.empty()) {
    absl::StrAppend(&text, "\n", Wrap(figure.caption, std::min(width, kMostWidth), 0), "\n");
  }
  return text;
}

}  // namespace lengthwise::client
