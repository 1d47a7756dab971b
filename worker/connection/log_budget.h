// Limits what one attempt may write to its trial's log.
#ifndef LENGTHWISE_WORKER_CONNECTION_LOG_BUDGET_H_
#define LENGTHWISE_WORKER_CONNECTION_LOG_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"

namespace lengthwise::worker {

// Log lines per attempt; one further line says that the rest is dropped. The server's limit is
// twice this (server/coordination/event_checks.h).
inline constexpr int64_t kMaxLogLines = 1000;
// Bytes per line. Longer lines are truncated and end with a note.
inline constexpr size_t kMaxLogLineBytes = 8 << 10;

// Returns platform::PrintableText of `text`, truncated to `max_bytes` plus a note of how many bytes
// were cut.
std::string PlainText(absl::string_view text, size_t max_bytes);

class LogBudget {
 public:
  // Truncates the line if necessary. Returns false if the caller must drop it.
  bool Take(v1::LogLine& line);

 private:
  int64_t lines_ = 0;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_LOG_BUDGET_H_
