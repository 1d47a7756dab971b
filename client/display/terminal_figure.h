// Draws figures of curves as text.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_FIGURE_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_FIGURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/display/terminal_text.h"

namespace lengthwise::client {

// Draws the panels one below the other in `width` columns, without bands. `figure` is the JSON of
// python/lengthwise/plots/numbers.py. INVALID_ARGUMENT for figures other than lines over a linear x
// axis; INTERNAL for text that is not such JSON.
absl::StatusOr<std::string> RenderFigure(const std::string& figure, int width,
                                         const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_FIGURE_H_
