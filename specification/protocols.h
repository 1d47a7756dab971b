// Protocols by name: what a paper fixes for its experiments, as defaults of a specification. A new
// protocol is one file in protocols/ and one line in protocols.cc. No LibTorch.
#ifndef LENGTHWISE_SPECIFICATION_PROTOCOLS_H_
#define LENGTHWISE_SPECIFICATION_PROTOCOLS_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::specification {

// What a paper's released code does where its text says otherwise, each part written as a
// specification. Used by `compatibility: reference_code`.
struct ReferenceCode {
  // Parameters of networks and encodings. A component with `randomized` is for those that are, or
  // are not.
  absl::string_view components = {};
  // Parameters of networks that hold with some encodings alone (overrides.h), one text for each.
  std::vector<absl::string_view> networks_with_encodings = {};
  // Learning rates, training and evaluation where training.lengths has several lengths.
  absl::string_view several_lengths = {};
};

// Its `parameters` are empty: what a protocol sets is overridden by setting it.
struct ProtocolEntry : catalogue::Entry {
  // The defaults, written as users write specifications, without name and protocol. Where several
  // components of an axis have the same name, the first gives the defaults for the users'
  // components of that name.
  absl::string_view yaml;
  // Absent where the authors have released no code.
  std::optional<ReferenceCode> reference_code = std::nullopt;
};

// Sorted by name. Lives forever.
absl::Span<const ProtocolEntry* const> ProtocolEntries();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PROTOCOLS_H_
