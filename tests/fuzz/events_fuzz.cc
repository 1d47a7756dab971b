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
  if (const absl::Status checked = server::CheckEvents(request); !checked.ok()) {
    Must(checked.code() == absl::StatusCode::kInvalidArgument, "events are accepted or refused");
    return 0;
  }
  int64_t sequence = request.events(0).sequence();
  for (const v1::Event& event : request.events()) {
    Must(event.sequence() == sequence++, "sequence numbers are consecutive");
    Must(event.fact_case() != v1::Event::FACT_NOT_SET, "an event has a fact");
    Must(!event.has_state_change(), "workers send no state changes");
    const server::EventRecord record = server::ToEventRecord(event);
    const absl::StatusOr<v1::Event> read = server::ToEvent(record, "e", "t", "the store");
    Must(read.ok() && read->sequence() == event.sequence() && read->step() == event.step() &&
             read->attempt() == event.attempt() && read->fact_case() == event.fact_case(),
         "an event reads back as stored");
  }
  return 0;
}
