// Redraws the last lines of a terminal in place.
#ifndef LENGTHWISE_CLIENT_DISPLAY_LIVE_REGION_H_
#define LENGTHWISE_CLIENT_DISPLAY_LIVE_REGION_H_

#include <ostream>
#include <string>
#include <vector>

#include "client/display/terminal.h"

namespace lengthwise::client {

// Writes only the changed lines, in one write, to avoid flicker. Hides the cursor from the first
// update to Finish. The lines must be narrower than the terminal, and fewer than its height.
class LiveRegion {
 public:
  explicit LiveRegion(std::ostream& out) : out_(out) {}
  ~LiveRegion() { Finish(); }

  // `size` is the terminal's current size. After a change everything is redrawn.
  void Update(const std::vector<std::string>& lines, const TerminalSize& size);

  // Leaves the lines on the screen. Later output goes below them.
  void Finish();

 private:
  std::ostream& out_;
  std::vector<std::string> lines_;
  TerminalSize size_;
  bool active_ = false;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_LIVE_REGION_H_
