// Figures of curves as text.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_FIGURE_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_FIGURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/display/terminal_text.h"

namespace lengthwise::client {

// `figure`: the JSON of python/lengthwise/plots/numbers.py. The panels one below the other, in
// `width` columns. Bands are left out. INVALID_ARGUMENT for figures that are not made of lines over
// a linear x axis; INTERNAL for other text.
absl::StatusOr<std::string> RenderFigure(const std::string& figure, int width,
                                         const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_FIGURE_H_
