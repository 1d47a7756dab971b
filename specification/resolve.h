// Turns a user's specification into trials: parses, fills in defaults, validates, expands.
// `lengthwise validate` and the server share these functions, so they always agree.
#ifndef LENGTHWISE_SPECIFICATION_RESOLVE_H_
#define LENGTHWISE_SPECIFICATION_RESOLVE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/specification.pb.h"
#include "specification/expand.h"
#include "specification/findings.h"
#include "specification/parse.h"

namespace lengthwise::specification {

struct Catalogues;  // specification/catalogues.h

struct Limits {
  int64_t max_trials = 100'000;
  // Bytes of all packs of a grid. A text of 1 MiB may describe gigabytes.
  int64_t max_grid_bytes = int64_t{64} << 20;
  int64_t max_text_bytes = 1 << 20;
  // Limit for the text of all problems together.
  size_t max_problem_bytes = kStatusProblemBytes;
};

// Parses, resolves and expands. Reports all problems in one INVALID_ARGUMENT, as ToStatus
// (findings.h) describes.
//
// The cost is bounded for any text: size, nesting, values (including YAML aliases), trials and the
// bytes of packs, which are counted before they are created. Thread-safe.
absl::StatusOr<Grid> Resolve(const v1::SpecificationText& text, const Limits& limits);
absl::StatusOr<Grid> Resolve(const v1::ExperimentSpecification& specification,
                             const Limits& limits);

// Resolves with the given catalogues. `parsed` may already contain problems.
absl::StatusOr<Grid> ResolveWith(const Catalogues& catalogues, Parsed parsed, const Limits& limits);

// Derives the format from the extension: .yaml, .yml, .json, .textproto or .txtpb. INVALID_ARGUMENT
// otherwise.
absl::StatusOr<v1::SpecificationText::Format> FormatOfFile(absl::string_view path);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_RESOLVE_H_
