// From what a user wrote to trials: parse, fill defaults, validate, expand. `lengthwise validate`
// and the server call the same functions and so give the same answer.
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

// What the text of problems may take in a status: gRPC allows headers of 8 KiB in all, and the
// problems are in it twice.
inline constexpr size_t kStatusProblemBytes = 2'400;

struct Limits {
  int64_t max_trials = 100'000;
  int64_t max_text_bytes = 1 << 20;
  // Of the text of all problems.
  size_t max_problem_bytes = kStatusProblemBytes;
};

// What trials that can train in one pack have in common: all but weight seed, data seed and
// learning rate.
struct GridPack {
  // Lower-case hexadecimal SHA-256 of the specification but `keep`.
  std::string key;
  // Without seeds and learning rate.
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
  // Shared by the trials of the grid that have the same; copying it for each would take longer than
  // all else that a submission costs.
  std::shared_ptr<const GridPack> pack;

  // All of it, in a message of its own.
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
  // In the order tasks, networks, encodings, learning rates, weight seeds, data seeds (last changes
  // fastest).
  std::vector<GridTrial> trials;
};

// Parses, resolves and expands. All problems come together in one INVALID_ARGUMENT whose message
// has a line for each, "field: description", and whose payload kBadRequestTypeUrl is a serialized
// google.rpc.BadRequest. Of very many problems the first are named and the rest counted
// (Limits::max_problem_bytes).
//
// What a text may cost is bounded whatever it says: its size, its nesting, its values (also through
// YAML's aliases) and the trials, which are counted before they are made. Any thread may call.
absl::StatusOr<Grid> Resolve(const v1::SpecificationText& text, const Limits& limits);
absl::StatusOr<Grid> Resolve(const v1::ExperimentSpecification& specification,
                             const Limits& limits);

// By the file's ending: .yaml, .yml, .json, .textproto, .txtpb; INVALID_ARGUMENT otherwise.
absl::StatusOr<v1::SpecificationText::Format> FormatOfFile(absl::string_view path);

inline constexpr absl::string_view kBadRequestTypeUrl = "type.googleapis.com/google.rpc.BadRequest";

// An INVALID_ARGUMENT made of problems, as described at Resolve. OK for no problems.
absl::Status ToStatus(const std::vector<catalogue::Problem>& problems,
                      size_t most_bytes = kStatusProblemBytes);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_RESOLVE_H_
