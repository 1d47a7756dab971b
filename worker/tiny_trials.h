// Trials that train in a fraction of a second, for tests.
#ifndef LENGTHWISE_WORKER_TINY_TRIALS_H_
#define LENGTHWISE_WORKER_TINY_TRIALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/specification.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// 40 steps of reverse_string by one block of width 16 with randomized sin/cos; points every 3
// steps, an evaluation every 15, a checkpoint every 10, then lengths 3, 6 (seen), 9 (not seen) and
// an attention map.
v1::TrialSpecification TinyTrial(uint64_t seed = 0);

// The same for text: additions of up to 3 digits in 4 sequences of 64 tokens a step, by one block
// of width 16 that continues text; then 2 (seen) and 4 digits.
v1::TrialSpecification TinyTextTrial(uint64_t seed = 0);

// Gives a trial the encoding of this name; for `formula`, formulas in all places.
void SetEncoding(const std::string& name, v1::TrialSpecification& trial);

// An input of the user's.
v1::TokenSequence TokensOf(absl::Span<const int32_t> tokens);
v1::TokenSequence NumbersOf(absl::Span<const double> numbers);

// A lease of first attempts of these trials.
v1::Lease LeaseOf(const std::vector<v1::TrialSpecification>& specifications);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_TINY_TRIALS_H_
