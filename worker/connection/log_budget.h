// Limits what one attempt may write to its trial's log.
#ifndef LENGTHWISE_WORKER_CONNECTION_LOG_BUDGET_H_
#define LENGTHWISE_WORKER_CONNECTION_LOG_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"

namespace lengthwise::worker {

// Lines of one attempt; one more says that the rest is left out. The server refuses twice as many
// (server/coordination/event_checks.h).
inline constexpr int64_t kMaxLogLines = 1000;
// Bytes of a line; what is longer is cut and says so.
inline constexpr size_t kMaxLogLineBytes = 8 << 10;

// platform::PrintableText, which every message may carry, cut to `max_bytes` and a word about what
// was cut.
std::string PlainText(absl::string_view text, size_t max_bytes);

class LogBudget {
 public:
  // Makes a line fit. False: it is to be dropped.
  bool Take(v1::LogLine& line);

 private:
  int64_t lines_ = 0;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_LOG_BUDGET_H_
