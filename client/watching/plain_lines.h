// An experiment's history as lines for files, pipes and logs.
#ifndef LENGTHWISE_CLIENT_WATCHING_PLAIN_LINES_H_
#define LENGTHWISE_CLIENT_WATCHING_PLAIN_LINES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/watching/experiment_view.h"

namespace lengthwise::client {

// What is worth a line is decided by the events alone (their own times, not the reader's), so that
// who joins late reads what was written before. Not thread-safe.
class PlainLines {
 public:
  // A training line a trial at most every so often.
  explicit PlainLines(absl::Duration interval, absl::TimeZone zone)
      : interval_(interval), zone_(zone) {}

  // The line of an event that was just applied to `view`; nullopt where there is none.
  std::optional<std::string> Line(const ExperimentView& view, const v1::Event& event);

 private:
  const absl::Duration interval_;
  const absl::TimeZone zone_;
  std::map<std::string, absl::Time> last_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_PLAIN_LINES_H_
