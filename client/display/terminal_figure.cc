#include "client/display/terminal_figure.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/display/chart.h"
#include "nlohmann/json.hpp"

namespace lengthwise::client {
namespace {

using nlohmann::json;

constexpr int kRows = 12;
constexpr int kMostWidth = 120;

using Range = std::pair<double, double>;

std::optional<Range> RangeOf(const json& value) {
  if (value.is_null()) return std::nullopt;
  return Range(value.at(0).get<double>(), value.at(1).get<double>());
}

// Converts between values and a chart's heights, 0 to 1.
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

Chart MakeChart(const json& figure, const json& panel) {
  const json& x = figure.at("x");
  const json& y = figure.at("y");
  const auto [low, high] = RangeOf(y.at("range")).value_or(Range(0, 1));
  const Heights heights{low, high, y.at("scale") == "log10"};
  Chart chart;
  chart.x_label = x.at("label").get<std::string>();
  for (const json& series : panel.at("series")) {
    const auto name = series.at("name").get<std::string>();
    // Faint background lines are omitted: a terminal has no room for them.
    if (series.at("faint").get<bool>() && name.empty()) continue;
    ChartSeries& curve = chart.series.emplace_back();
    curve.name = name;
    const json& xs = series.at("x");
    const json& ys = series.at("y");
    for (size_t i = 0; i < xs.size(); ++i) {
      curve.points.emplace_back(xs.at(i).get<double>(), heights.Of(ys.at(i).get<double>()));
    }
  }
  const std::optional<Range> shaded = RangeOf(panel.at("shaded"));
  const std::optional<Range> shown = RangeOf(x.at("range"));
  if (shaded.has_value() && shown.has_value() && shaded->second < shown->second) {
    chart.split = shaded->second;
    chart.split_labels = {"seen in training", "not seen"};
  }
  if (y.at("ticks") != "percent") {
    chart.height_label = [heights](double height) {
      return absl::StrFormat("%.2g", heights.Value(height));
    };
  }
  return chart;
}

absl::StatusOr<std::string> Render(const json& figure, int width, const Palette& palette) {
  const json& x = figure.at("x");
  bool has_lines = x.at("scale") == "linear" && x.at("ticks") != "none";
  for (const json& panel : figure.at("panels")) {
    has_lines &= !panel.at("series").empty();
    for (const json& series : panel.at("series")) has_lines &= series.at("kind") == "line";
  }
  if (!has_lines) {
    return absl::InvalidArgumentError(
        absl::StrCat("a terminal cannot show the figure ", figure.at("kind").get<std::string>(),
                     "; it can show those of accuracies, errors and loss"));
  }
  std::string text =
      absl::StrCat(palette(Paint::kBold, figure.at("title").get<std::string>()), "\n");
  for (const json& panel : figure.at("panels")) {
    absl::StrAppend(&text, "\n", panel.at("title").get<std::string>(), " · ",
                    figure.at("y").at("label").get<std::string>(), "\n",
                    MakeChart(figure, panel).Render(std::min(width, kMostWidth), kRows, palette));
    for (const json& reference : panel.at("references")) {
      absl::StrAppend(&text, palette(Paint::kDim, reference.at("label").get<std::string>()), "\n");
    }
  }
  if (const auto caption = figure.at("caption").get<std::string>(); !caption.empty()) {
    absl::StrAppend(&text, "\n", Wrap(caption, std::min(width, kMostWidth), 0), "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> RenderFigure(const std::string& figure, int width,
                                         const Palette& palette) {
  try {
    return Render(json::parse(figure), width, palette);
  } catch (const json::exception& error) {
    return absl::InternalError(absl::StrCat("the figure cannot be read: ", error.what()));
  }
}

}  // namespace lengthwise::client
