// Protocols by name: what a paper fixes for its experiments, as defaults of a specification. A new
// protocol is one file in protocols/ and one line in protocols.cc. No LibTorch.
#ifndef LENGTHWISE_SPECIFICATION_PROTOCOLS_H_
#define LENGTHWISE_SPECIFICATION_PROTOCOLS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::specification {

// Its `parameters` are empty: what a protocol sets is overridden by setting it.
struct ProtocolEntry : catalogue::Entry {
  // The defaults, written as users write specifications, without name and protocol. Where several
  // components of an axis have the same name, the first gives the defaults for the users'
  // components of that name.
  absl::string_view yaml;
  // Parameters of networks and encodings as the paper's released code has them where its text says
  // otherwise, written as a specification; empty where there is no such code. Used by
  // `compatibility: reference_code`.
  absl::string_view reference_code = {};
};

// Sorted by name. Lives forever.
absl::Span<const ProtocolEntry* const> ProtocolEntries();

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PROTOCOLS_H_
