#include "client/plotting/gnuplot_script.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/plotting/figure_layout.h"
#include "client/plotting/gnuplot_looks.h"
#include "client/plotting/gnuplot_panels.h"

namespace lengthwise::client {
namespace {

// Of fonts-dejavu-core. An SVG is drawn where it is read: there, if need be, with a font that is as
// wide, or with any without serifs.
constexpr absl::string_view kPngFont = "DejaVu Sans";
constexpr absl::string_view kSvgFont = "DejaVu Sans,Verdana,sans-serif";

void AppendData(const Figure& figure, std::string& script) {
  for (size_t p = 0; p < figure.panels.size(); ++p) {
    const Panel& panel = figure.panels[p];
    for (size_t s = 0; s < panel.series.size(); ++s) {
      const Series& series = panel.series[s];
      absl::StrAppend(&script, "# ", absl::StrReplaceAll(panel.title, {{"\n", " "}}), ": ",
                      absl::StrReplaceAll(series.name, {{"\n", " "}}),
                      series.kind == Series::Kind::kLine ? " (x y low high)\n" : " (x y)\n",
                      DataName(p, s), " << EOD\n");
      for (const SeriesPoint& point : series.points) {
        if (!std::isfinite(point.x) || !std::isfinite(point.y)) {
          absl::StrAppend(&script, "\n");  // a gap
        } else if (series.kind == Series::Kind::kScatter) {
          absl::StrAppendFormat(&script, "%.7g %.7g\n", point.x, point.y);
        } else {
          absl::StrAppendFormat(&script, "%.9g %.7g %.7g %.7g\n", point.x, point.y, point.low,
                                point.high);
        }
      }
      absl::StrAppend(&script, "EOD\n");
    }
    if (panel.map.has_value()) {
      const HeatMap& map = *panel.map;
      absl::StrAppend(&script, "# ", absl::StrReplaceAll(panel.title, {{"\n", " "}}),
                      " (rows are queries, columns keys)\n", DataName(p, 0), " << EOD\n");
      for (int row = 0; row < map.size; ++row) {
        for (int column = 0; column < map.size; ++column) {
          absl::StrAppendFormat(&script, column == 0 ? "%.4g" : " %.4g",
                                map.values[static_cast<size_t>(row) * map.size + column]);
        }
        absl::StrAppend(&script, "\n");
      }
      absl::StrAppend(&script, "EOD\n");
    }
  }
}

// All text and the legend, as one plot over the whole picture whose coordinates are pixels.
std::string TextPlot(const FigureLayout& layout) {
  std::string script = absl::StrCat(
      "# Titles and legend\n",
      Margins({0, 0, static_cast<double>(layout.width), static_cast<double>(layout.height)},
              layout));
  absl::StrAppendFormat(&script, "set xrange [0:%d]; set yrange [%d:0]\n", layout.width,
                        layout.height);
  absl::StrAppend(&script, "unset border; unset xtics; unset ytics; unset grid\n");
  for (const PlacedText& text : layout.texts) {
    absl::StrAppendFormat(&script, "set label %s at %.1f,%.1f %s %s %s tc rgb '%s'\n",
                          GnuplotString(text.text), text.x, text.y,
                          text.align == PlacedText::Align::kCenter ? "center" : "left",
                          text.upright ? "rotate by 90" : "norotate", FontOption(text.size), kInk);
  }
  // Samples of lines are drawn as data: of arrows of one colour, gnuplot gives an SVG one path,
  // which is dashed or not.
  std::vector<std::string> lines;
  for (const LegendEntry& entry : layout.legend) {
    const double end = entry.x + kLegendSample;
    const std::string at =
        absl::StrFormat("%.1f,%.1f to %.1f,%.1f", entry.x, entry.y, end, entry.y);
    if (entry.kind == LegendEntry::Kind::kShade) {
      absl::StrAppendFormat(&script,
                            "set object rectangle from %.1f,%.1f to %.1f,%.1f fc rgb '%s' fs solid "
                            "border lc rgb '#BBBBBB'\n",
                            entry.x, entry.y - 7, end, entry.y + 7, kShade);
    } else if (entry.kind == LegendEntry::Kind::kReference) {
      absl::StrAppend(&script, "set arrow from ", at, " nohead ", kReferenceLine, "\n");
    } else {
      const Series& series = *entry.series;
      const bool line = series.kind == Series::Kind::kLine;
      if (line) {
        const std::string data = absl::StrCat("$legend", lines.size() + 1);
        absl::StrAppendFormat(&script, "%s << EOD\n%.1f %.1f\n%.1f %.1f\nEOD\n", data, entry.x,
                              entry.y, end, entry.y);
        lines.push_back(absl::StrCat(data, " with lines ", LineLook(series.style), " notitle"));
      }
      absl::StrAppendFormat(&script, "set label '' at %.1f,%.1f point pt %d ps %.2g lc rgb %s\n",
                            (entry.x + end) / 2, entry.y, PointType(series.style), line ? 0.9 : 0.8,
                            Color(series.style));
    }
    absl::StrAppendFormat(&script, "set label %s at %.1f,%.1f left norotate %s tc rgb '%s'\n",
                          GnuplotString(entry.name), end + 6, entry.y, FontOption(kText), kInk);
  }
  if (lines.empty()) lines.push_back("NaN notitle");
  absl::StrAppend(&script, "plot ", absl::StrJoin(lines, ", \\\n     "),
                  "\nunset label; unset arrow; unset object; set border 3 lc rgb '", kInk,
                  "' lw 1\n");
  return script;
}

std::string Terminal(const Figure& figure, const FigureLayout& layout, const Picture& picture) {
  const bool svg = picture.format == PictureFormat::kSvg;
  // pngcairo takes a size of text for points at 96 pixels an inch; 3/4 of that are pixels.
  return absl::StrFormat(
      "set terminal %s size %d,%d noenhanced font '%s,%.4g' %s background '#FFFFFF'\n",
      svg ? "svg" : "pngcairo", layout.width, layout.height, svg ? kSvgFont : kPngFont, kText,
      svg ? absl::StrCat("name '", figure.kind, "'") : "fontscale 0.75");
}

// matplotlib's viridis at nine places: even steps of the value are even steps to the eye, also of a
// colour-blind reader and in grey.
constexpr absl::string_view kViridis =
    "set palette defined (0 '#440154', 1 '#472D7B', 2 '#3B528B', 3 '#2C728E', 4 '#21918C', 5 "
    "'#28AE80', 6 '#5EC962', 7 '#ADDC30', 8 '#FDE725')\n";

}  // namespace

absl::StatusOr<std::string> GnuplotScript(const Figure& figure, const PictureSize& size,
                                          const std::vector<Picture>& pictures) {
  auto layout = LayOut(figure, size.width, size.height);
  if (!layout.ok()) return layout.status();
  std::string script =
      "# Made by `lengthwise plot`. `gnuplot FILE` draws it (Debian's package is gnuplot-nox).\n"
      "set encoding utf8\n";
  AppendData(figure, script);
  for (const Picture& picture : pictures) {
    absl::StrAppend(&script, "\nreset\n", Terminal(figure, *layout, picture), "set output ",
                    GnuplotString(picture.path), "\n", figure.has_maps() ? kViridis : "",
                    "unset key\nset multiplot\n", TextPlot(*layout));
    for (size_t i = 0; i < figure.panels.size(); ++i) {
      absl::StrAppend(&script, "# Panel ", i + 1, "\n", PanelScript(figure, i, *layout));
    }
    absl::StrAppend(&script, "unset multiplot\nset output\n");
  }
  return script;
}

}  // namespace lengthwise::client
