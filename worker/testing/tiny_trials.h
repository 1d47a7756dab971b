// Builds trials for tests that train in a fraction of a second.
#ifndef LENGTHWISE_WORKER_TESTING_TINY_TRIALS_H_
#define LENGTHWISE_WORKER_TESTING_TINY_TRIALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/specification.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// reverse_string, 40 steps, one block of width 16, randomized sin/cos encoding. Loss points every 3
// steps, an evaluation every 15, a checkpoint every 10. The final evaluation covers lengths 3 and 6
// (seen) and 9 (unseen), with an attention map.
v1::TrialSpecification TinyTrial(uint64_t seed = 0);

// The text variant: a decoder of one block of width 16 learns additions of up to 3 digits from 4
// sequences of 64 tokens a step. The final evaluation covers 2 (seen) and 4 digits.
v1::TrialSpecification TinyTextTrial(uint64_t seed = 0);

// Sets the trial's encoding by name; for `formula`, also sets every formula parameter.
void SetEncoding(const std::string& name, v1::TrialSpecification& trial);

// Returns a custom input, as a user would give it.
v1::TokenSequence TokensOf(absl::Span<const int32_t> tokens);
v1::TokenSequence NumbersOf(absl::Span<const double> numbers);

// Returns a lease of these trials, each in its first attempt.
v1::Lease LeaseOf(const std::vector<v1::TrialSpecification>& specifications);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_TESTING_TINY_TRIALS_H_
