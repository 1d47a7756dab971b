// One panel of a figure as commands of gnuplot.
#ifndef LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_PANELS_H_
#define LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_PANELS_H_

#include <string>

#include "client/plotting/figure.h"
#include "client/plotting/figure_layout.h"

namespace lengthwise::client {

// The data block of a series, from 0, of a panel; a map is series 0.
std::string DataName(size_t panel, size_t series);

// Plots a panel from its data blocks within a multiplot, and leaves nothing behind for the next.
std::string PanelScript(const Figure& figure, size_t index, const FigureLayout& layout);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_GNUPLOT_PANELS_H_
