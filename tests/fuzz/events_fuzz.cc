// The intake of workers' events: parses bytes as a StreamEventsRequest, checks them, and passes
// them into the store and out again.
#include <cstddef>
#include <cstdint>

#include "google/protobuf/stubs/logging.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/event_checks.h"
#include "server/coordination/messages.h"
#include "tests/fuzz/must.h"

// Silences protobuf's warning about invalid UTF-8, which nearly every input triggers.
[[maybe_unused]] google::protobuf::LogHandler* const kLoud =
    google::protobuf::SetLogHandler(nullptr);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  v1::StreamEventsRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto parts = server::PartsOf(request);
  if (!parts.ok()) {
    Must(parts.status().code() == absl::StatusCode::kInvalidArgument, "batches are taken or not");
    return 0;
  }
  for (const server::Events events : *parts) {
    if (const absl::Status checked = server::CheckEvents(events); !checked.ok()) {
      Must(checked.code() == absl::StatusCode::kInvalidArgument, "events are accepted or refused");
      continue;
    }
    int64_t sequence = events.front()->sequence();
    for (const v1::Event* event : events) {
      Must(event->trial() == events.front()->trial(), "a part is of one trial");
      Must(event->sequence() == sequence++, "sequence numbers are consecutive");
      Must(event->fact_case() != v1::Event::FACT_NOT_SET, "an event has a fact");
      Must(!event->has_state_change(), "workers send no state changes");
      const server::EventRecord record = server::ToEventRecord(*event);
      const absl::StatusOr<v1::Event> read = server::ToEvent(record, "e", "t", "the store");
      Must(read.ok() && read->sequence() == event->sequence() && read->step() == event->step() &&
               read->attempt() == event->attempt() && read->fact_case() == event->fact_case(),
           "an event reads back as stored");
    }
  }
  return 0;
}
