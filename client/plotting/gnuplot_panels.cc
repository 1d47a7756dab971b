#include "client/plotting/gnuplot_panels.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/plotting/axis_ticks.h"
#include "client/plotting/gnuplot_looks.h"

namespace lengthwise::client {
namespace {

// Markers on a line; more would hide it.
constexpr size_t kMarkersOnLine = 10;

// Of a cloud, points are small and let others through; of fewer each is to be seen.
constexpr size_t kFewPoints = 50;

std::string ScatterLook(const Series& series) {
  if (!series.faint && series.points.size() <= kFewPoints) {
    return absl::StrFormat("pt %d ps 1.10 lc rgb %s", PointType(series.style),
                           Color(series.style, 40));
  }
  return absl::StrFormat("pt %d ps %.2f lc rgb %s", PointType(series.style),
                         series.faint ? 0.8 : 0.45, Color(series.style, series.faint ? 110 : 90));
}

bool HasBand(const Series& series) {
  return std::any_of(series.points.begin(), series.points.end(),
                     [](const SeriesPoint& point) { return point.low < point.high; });
}

// The range that an axis has in one panel.
std::pair<double, double> Range(const Axis& axis, const Panel& panel, bool is_x) {
  if (axis.range.has_value()) return *axis.range;
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const Series& series : panel.series) {
    for (const SeriesPoint& point : series.points) {
      const double below = is_x ? point.x : std::min(point.y, point.low);
      const double above = is_x ? point.x : std::max(point.y, point.high);
      if (std::isfinite(below)) low = std::min(low, below);
      if (std::isfinite(above)) high = std::max(high, above);
    }
  }
  if (low > high) return {0, 1};
  // Room for markers; a point's worth where all values are the same.
  if (axis.scale == Axis::Scale::kLinear) {
    const double room = high > low ? 0.04 * (high - low) : std::max(1e-3, 0.04 * std::abs(high));
    return {low - room, high + room};
  }
  const double factor = high > low ? std::pow(high / low, 0.05) : 2;
  return {low / factor, high * factor};
}

// Labels of ticks are formats of numbers.
std::string TickText(const Tick& tick) { return absl::StrReplaceAll(tick.label, {{"%", "%%"}}); }

std::string Ticks(absl::string_view axis, const std::vector<Tick>& ticks, bool with_labels) {
  if (ticks.empty()) return absl::StrCat("unset ", axis, "tics\n");
  std::string list = absl::StrJoin(ticks, ", ", [&](std::string* out, const Tick& tick) {
    absl::StrAppendFormat(out, "%s %.9g", GnuplotString(with_labels ? TickText(tick) : ""),
                          tick.at);
  });
  // Labels below the axis stand a line of the terminal's larger text away.
  const absl::string_view closer = axis == "x" ? "offset 0,0.5 " : "";
  return absl::StrCat("set ", axis, "tics nomirror out scale 0.5 ", closer, FontOption(kSmallText),
                      " textcolor rgb '", kInk, "' (", list, ")\n");
}

std::string CurvePanel(const Figure& figure, size_t index, const FigureLayout& layout) {
  const Panel& panel = figure.panels[index];
  const Rectangle& frame = layout.panels[index];
  const auto [left, right] = Range(figure.x, panel, true);
  const auto [bottom, top] = Range(figure.y, panel, false);
  std::string script = Margins(frame, layout);
  absl::StrAppendFormat(&script, "set xrange [%.9g:%.9g]; set yrange [%.9g:%.9g]\n", left, right,
                        bottom, top);
  const auto scale = [&](absl::string_view name, Axis::Scale of_axis) {
    absl::StrAppend(&script, of_axis == Axis::Scale::kLinear ? "unset" : "set", " logscale ", name,
                    of_axis == Axis::Scale::kLog2    ? " 2"
                    : of_axis == Axis::Scale::kLog10 ? " 10"
                                                     : "",
                    "\n");
  };
  scale("x", figure.x.scale);
  scale("y", figure.y.scale);
  const int x_ticks = static_cast<int>(frame.width / 55);
  const int y_ticks = static_cast<int>(frame.height / 26);
  absl::StrAppend(&script, Ticks("x", AxisTicks(figure.x, left, right, x_ticks), true));
  const bool label_y = index % figure.columns == 0 || !figure.y.range.has_value();
  absl::StrAppend(&script, Ticks("y", AxisTicks(figure.y, bottom, top, y_ticks), label_y));
  const bool scatter = figure.x.ticks == Axis::Ticks::kNone;
  absl::StrAppend(&script, "set border ", scatter ? 15 : 3, "\n");
  if (figure.y.ticks != Axis::Ticks::kNone) {
    absl::StrAppend(&script, "set grid ytics back lc rgb '", kGrid, "' lt 1 lw 1\n");
  }
  if (panel.shaded.has_value()) {
    const double from = std::clamp(panel.shaded->first, left, right);
    const double to = std::clamp(panel.shaded->second, left, right);
    absl::StrAppendFormat(&script,
                          "set object rectangle from first %.9g, graph 0 to first %.9g, graph 1 fc "
                          "rgb '%s' fs solid noborder behind\n",
                          from, to, kShade);
  }
  for (const Reference& reference : panel.references) {
    absl::StrAppendFormat(&script,
                          "set arrow from graph 0, first %.9g to graph 1, first %.9g nohead %s\n",
                          reference.y, reference.y, kReferenceLine);
    if (figure.panels.size() == 1) {
      absl::StrAppendFormat(
          &script,
          "set label %s at graph 1, first %.9g left offset character 0.7,0 %s tc rgb '%s'\n",
          GnuplotString(reference.label), reference.y, FontOption(kSmallText), kInk);
    }
  }
  std::vector<std::string> faint;
  std::vector<std::string> bands;
  std::vector<std::string> lines;
  std::vector<std::string> markers;
  for (size_t s = 0; s < panel.series.size(); ++s) {
    const Series& series = panel.series[s];
    const std::string data = DataName(index, s);
    if (series.points.empty()) continue;
    if (series.kind == Series::Kind::kScatter) {
      (series.faint ? faint : lines)
          .push_back(
              absl::StrCat(data, " using 1:2 with points ", ScatterLook(series), " notitle"));
      continue;
    }
    if (series.faint) {
      faint.push_back(absl::StrCat(data, " using 1:2 with lines lc rgb ", Color(series.style, 90),
                                   " lw 1 notitle"));
      continue;
    }
    if (HasBand(series)) {
      bands.push_back(absl::StrCat(data, " using 1:3:4 with filledcurves fc rgb ",
                                   Color(series.style, 210), " fs solid noborder notitle"));
    }
    lines.push_back(
        absl::StrCat(data, " using 1:2 with lines ", LineLook(series.style), " notitle"));
    // Markers of different series stand at different places, so that they do not hide each other
    // where lines meet.
    const size_t interval = (series.points.size() + kMarkersOnLine - 1) / kMarkersOnLine;
    markers.push_back(absl::StrFormat(
        "%s using 1:2 every %d::%d with points pt %d ps 0.9 lc rgb %s notitle", data, interval,
        interval * s / panel.series.size(), PointType(series.style), Color(series.style)));
  }
  std::vector<std::string> all = std::move(faint);
  all.insert(all.end(), bands.begin(), bands.end());
  all.insert(all.end(), lines.begin(), lines.end());
  all.insert(all.end(), markers.begin(), markers.end());
  if (all.empty()) all.push_back("NaN notitle");
  absl::StrAppend(&script, "plot ", absl::StrJoin(all, ", \\\n     "),
                  "\nunset object; unset arrow; unset label; unset grid\n");
  return script;
}

std::string MapPanel(const Figure& figure, size_t index, const FigureLayout& layout) {
  const HeatMap& map = *figure.panels[index].map;
  const Rectangle& frame = layout.panels[index];
  std::string script = Margins(frame, layout);
  // Cell i covers the tokens from i * tokens_per_cell on.
  const double end = static_cast<double>(map.size) * map.tokens_per_cell;
  absl::StrAppendFormat(&script, "set xrange [0:%.9g]; set yrange [%.9g:0]\n", end, end);
  const Axis axis;
  const std::vector<Tick> ticks =
      AxisTicks(axis, 0, end, std::min(6, static_cast<int>(frame.width / 45)));
  absl::StrAppend(&script, Ticks("x", ticks, true), Ticks("y", ticks, index % figure.columns == 0),
                  "set border 15\n");
  absl::StrAppendFormat(&script, "set cbrange [0:%.6g]\n", figure.map_maximum);
  if (index == 0) {
    const Rectangle& bar = layout.color_bar;
    absl::StrAppendFormat(
        &script,
        "set colorbox user vertical origin screen %.6f,%.6f size screen %.6f,%.6f noborder\n",
        bar.left / layout.width, 1 - bar.bottom() / layout.height, bar.width / layout.width,
        bar.height / layout.height);
    absl::StrAppend(&script, Ticks("cb", AxisTicks(axis, 0, figure.map_maximum, 6), true));
  } else {
    absl::StrAppend(&script, "unset colorbox\n");
  }
  if (map.first_output > 0 && map.first_output < map.tokens) {
    const double at = map.first_output;
    absl::StrAppendFormat(
        &script,
        "set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead front lc "
        "rgb '#FFFFFF' lw 1\n"
        "set arrow from graph 0, first %.9g to graph 1, first %.9g nohead front lc "
        "rgb '#FFFFFF' lw 1\n",
        at, at, at, at);
  }
  absl::StrAppendFormat(&script,
                        "plot %s matrix using (($1+0.5)*%d):(($2+0.5)*%d):3 with image notitle\n"
                        "unset arrow\n",
                        DataName(index, 0), map.tokens_per_cell, map.tokens_per_cell);
  return script;
}

}  // namespace

std::string DataName(size_t panel, size_t series) {
  return absl::StrCat("$panel", panel + 1, "_series", series + 1);
}

std::string PanelScript(const Figure& figure, size_t index, const FigureLayout& layout) {
  return figure.panels[index].map.has_value() ? MapPanel(figure, index, layout)
                                              : CurvePanel(figure, index, layout);
}

}  // namespace lengthwise::client
