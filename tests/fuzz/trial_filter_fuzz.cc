// The filter language of ListTrials.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/coordination/names.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto filter = server::ParseTrialFilter(text);
  Must(filter.ok() || filter.status().code() == absl::StatusCode::kInvalidArgument,
       "a filter is read or refused");
  return 0;
}
