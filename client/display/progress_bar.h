// A bar of a line's height.
#ifndef LENGTHWISE_CLIENT_DISPLAY_PROGRESS_BAR_H_
#define LENGTHWISE_CLIENT_DISPLAY_PROGRESS_BAR_H_

#include <string>

#include "client/display/terminal_text.h"

namespace lengthwise::client {

// A bar of `width` columns, filled to `fraction` (0 to 1, others are taken for the nearer of the
// two) in steps of half a column: "━━━━━━╸─────". Only a fraction of 1 fills the last half.
std::string ProgressBar(double fraction, int width, Paint paint, const Palette& palette);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_PROGRESS_BAR_H_
