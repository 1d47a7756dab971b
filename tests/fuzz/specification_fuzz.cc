// The specification parser. The first byte selects the format of the rest.
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/storage/resource_id.h"
#include "specification/resolve.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  if (size == 0) return 0;
  v1::SpecificationText text;
  text.set_format(static_cast<v1::SpecificationText::Format>(1 + data[0] % 3));
  text.set_text(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const auto grid = specification::Resolve(text, {.max_trials = 100});
  if (!grid.ok()) {
    Must(!grid.status().message().empty(), "a refusal says why");
    return 0;
  }
  Must(!grid->trials.empty() && grid->trials.size() <= 100, "a grid has 1 to max_trials trials");
  for (const specification::GridTrial& trial : grid->trials) {
    Must(server::IsResourceId(trial.id), "the server accepts trial ids");
  }
  // Resolving is idempotent.
  const auto again = specification::Resolve(grid->specification, {.max_trials = 100});
  Must(again.ok() && again->trials.size() == grid->trials.size(), "resolving is idempotent");
  return 0;
}
