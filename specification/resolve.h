// Turns a user's specification into trials: parses, fills in defaults, validates, expands.
// `lengthwise validate` and the server share these functions, so they always agree.
#ifndef LENGTHWISE_SPECIFICATION_RESOLVE_H_
#define LENGTHWISE_SPECIFICATION_RESOLVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Byte budget for problems in a gRPC status. gRPC limits all headers to 8 KiB, and a status carries
// the problems twice: in its message and in its details.
inline constexpr size_t kStatusProblemBytes = 2'400;

struct Limits {
  int64_t max_trials = 100'000;
  int64_t max_text_bytes = 1 << 20;
  // Limit for the text of all problems together.
  size_t max_problem_bytes = kStatusProblemBytes;
};

// The fields shared by trials that can train in one pack: all except weight seed, data seed and
// learning rate.
struct GridPack {
  // Lower-case hexadecimal SHA-256 of the specification without `keep`.
  std::string key;
  // Has no seeds and no learning rate.
  v1::TrialSpecification specification;
};

// One trial of a grid.
struct GridTrial {
  // Stable: the same point of the grid has the same id in every experiment:
  // "bucket_sort-encoder-randomized_sin_cos-lr0.001-seed0" (or "-weights0-data3").
  std::string id;
  double learning_rate = 0;
  uint64_t weight_seed = 0;
  uint64_t data_seed = 0;
  // Shared by all trials of the pack: copying it for each trial would dominate the cost of a
  // submission.
  std::shared_ptr<const GridPack> pack;

  // The trial's complete specification.
  v1::TrialSpecification Specification() const {
    v1::TrialSpecification specification = pack->specification;
    specification.set_learning_rate(learning_rate);
    specification.set_weight_seed(weight_seed);
    specification.set_data_seed(data_seed);
    return specification;
  }
};

struct Grid {
  // As given, with every default filled in.
  v1::ExperimentSpecification specification;
  // Ordered by tasks, networks, encodings, learning rates, weight seeds, data seeds; the last
  // changes fastest.
  std::vector<GridTrial> trials;
};

// Parses, resolves and expands. Reports all problems in one INVALID_ARGUMENT. Its message has a
// line for each problem, "field: description"; its payload kBadRequestTypeUrl is a serialized
// google.rpc.BadRequest. Past Limits::max_problem_bytes, further problems are only counted.
//
// The cost is bounded for any text: size, nesting, values (including YAML aliases) and trials,
// which are counted before they are created. Thread-safe.
absl::StatusOr<Grid> Resolve(const v1::SpecificationText& text, const Limits& limits);
absl::StatusOr<Grid> Resolve(const v1::ExperimentSpecification& specification,
                             const Limits& limits);

// Derives the format from the extension: .yaml, .yml, .json, .textproto or .txtpb. INVALID_ARGUMENT
// otherwise.
absl::StatusOr<v1::SpecificationText::Format> FormatOfFile(absl::string_view path);

inline constexpr absl::string_view kBadRequestTypeUrl = "type.googleapis.com/google.rpc.BadRequest";

// Builds the INVALID_ARGUMENT that Resolve describes. OK if there are no problems.
absl::Status ToStatus(const std::vector<catalogue::Problem>& problems,
                      size_t most_bytes = kStatusProblemBytes);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_RESOLVE_H_
