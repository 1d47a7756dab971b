// How gnuplot is told colours, markers, lines, text and places.
#ifndef LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_LOOKS_H_
#define LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_LOOKS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client/plotting/figure.h"
#include "client/plotting/figure_layout.h"

namespace lengthwise::client {

inline constexpr absl::string_view kShade = "#ECECEC";
inline constexpr absl::string_view kGrid = "#E2E2E2";
inline constexpr absl::string_view kInk = "#333333";
inline constexpr absl::string_view kReferenceLine = "lc rgb '#555555' dt (2,4) lw 1.5";

// A quoted "#RRGGBB", or with `transparency` from 0 to 255 gnuplot's "#AARRGGBB".
std::string Color(const SeriesStyle& style, int transparency = 0);
int PointType(const SeriesStyle& style);
std::string LineLook(const SeriesStyle& style);

// A size of the terminal's family.
std::string FontOption(double size);

// As a string of a script: in single quotes, on one line.
std::string GnuplotString(absl::string_view text);

// Makes the next plot's frame this one.
std::string Margins(const Rectangle& frame, const FigureLayout& layout);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_LOOKS_H_
