// The specification parser. The first byte selects the format of the rest.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/common.h"
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
    Must(grid.status().code() == absl::StatusCode::kInvalidArgument,
         "a specification is accepted or refused");
    const absl::string_view message = grid.status().message();
    Must(!message.empty(), "a refusal says why");
    // Clients cannot parse the details of a status whose strings are not UTF-8.
    Must(google::protobuf::internal::IsStructurallyValidUTF8(message.data(),
                                                             static_cast<int>(message.size())),
         "a refusal is UTF-8");
    return 0;
  }
  Must(!grid->trials.empty() && grid->trials.size() <= 100, "a grid has 1 to max_trials trials");
  for (const specification::GridTrial& trial : grid->trials) {
    Must(server::IsResourceId(trial.id), "the server accepts trial ids");
  }
  v1::ExperimentSpecification sent;
  Must(sent.ParseFromString(grid->specification.SerializeAsString()), "its strings are UTF-8");
  // Resolving is idempotent.
  const auto again = specification::Resolve(grid->specification, {.max_trials = 100});
  Must(again.ok() && again->trials.size() == grid->trials.size(), "resolving is idempotent");
  return 0;
}
