// Figures of curves as text.
#ifndef LENGTHWISE_CLIENT_PLOTTING_TERMINAL_FIGURE_H_
#define LENGTHWISE_CLIENT_PLOTTING_TERMINAL_FIGURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/rendering/text.h"

namespace lengthwise::client {

// The panels one below the other, in `width` columns. Bands are left out. INVALID_ARGUMENT for
// figures that are not made of lines over a linear x axis.
absl::StatusOr<std::string> RenderFigure(const Figure& figure, int width, const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_TERMINAL_FIGURE_H_
