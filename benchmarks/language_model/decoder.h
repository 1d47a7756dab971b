// A language model with initial weights, for benchmarks.
#ifndef LENGTHWISE_BENCHMARKS_LANGUAGE_MODEL_DECODER_H_
#define LENGTHWISE_BENCHMARKS_LANGUAGE_MODEL_DECODER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/networks/language_model.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::benchmarks {

// The vocabulary of decimal addition.
inline constexpr int64_t kVocabulary = 116;

// The paper's model sizes, by number of parameters (Zhou et al. 2024, Table E.1).
struct DecoderSize {
  int64_t blocks = 6, heads = 8, d_model = 512;
};

// Accepts "1M" (2 blocks of d_model 192), "2M", "5M", "25M" or "268M".
DecoderSize SizeOf(const std::string& name);

// Resolves an entry's parameters: its defaults, overridden by `given`.
template <typename Entry>
catalogue::Parameters Resolved(absl::Span<const Entry* const> entries, const std::string& name,
                               const catalogue::Parameters& given) {
  std::vector<catalogue::Problem> problems;
  for (const Entry* entry : entries) {
    if (entry->name == name) return catalogue::Resolve(*entry, given, name, problems);
  }
  return {};
}

struct Decoder {
  // Positions are consecutive, or drawn from 2,048 if `randomized` and the encoding supports it.
  // `network` sets further parameters.
  Decoder(const DecoderSize& size, const std::string& encoding, bool randomized, int64_t tokens,
          catalogue::Parameters network = {});

  models::ParameterLayout layout;
  std::unique_ptr<models::LanguageModel> model;
  std::unique_ptr<models::ParameterArena> arena;
  at::Tensor positions;  // [1, S, tokens]
};

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_LANGUAGE_MODEL_DECODER_H_
