// Renders an experiment's history as lines for files, pipes and logs.
#ifndef LENGTHWISE_CLIENT_WATCHING_PLAIN_LINES_H_
#define LENGTHWISE_CLIENT_WATCHING_PLAIN_LINES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/watching/experiment_view.h"

namespace lengthwise::client {

// The events and their own times alone decide which lines are printed, so that a late reader gets
// the same lines as an early one. Not thread-safe.
class PlainLines {
 public:
  // Prints at most one training line per trial and `interval`.
  explicit PlainLines(absl::Duration interval, absl::TimeZone zone)
      : interval_(interval), zone_(zone) {}

  // Returns the line of an event that was just applied to `view`; nullopt if it has none.
  std::optional<std::string> Line(const ExperimentView& view, const v1::Event& event);

 private:
  const absl::Duration interval_;
  const absl::TimeZone zone_;
  std::map<std::string, absl::Time> last_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_PLAIN_LINES_H_
