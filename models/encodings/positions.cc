#include "models/encodings/positions.h"

#include <cstddef>
#include <numeric>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"

namespace lengthwise::models {
namespace {

template <typename Value>
Value Get(const catalogue::Parameters& parameters, absl::string_view name, Value absent) {
  const auto found = parameters.values().find(name);
  return found == parameters.values().end() ? absent : std::get<Value>(found->second);
}

}  // namespace

std::vector<catalogue::ParameterEntry> PositionParameters() {
  return {
      {.name = "randomized",
       .default_value = false,
       .documentation = "Positions are a sorted random subset of {0, ..., max_position - 1}, drawn "
                        "once per batch (randomized positional encodings, section 3)."},
      {.name = "max_position",
       .default_value = int64_t{2048},
       .documentation = "L: randomized positions are drawn from 0 to L - 1. At least the tokens "
                        "(input and output) of the longest sequence.",
       .minimum = 1,
       .maximum = 1 << 20},
      {.name = "sorted",
       .default_value = true,
       .documentation = "Sorts randomized positions in ascending order. False keeps their random "
                        "order (Table 3)."},
      {.name = "randomized_at_evaluation",
       .default_value = true,
       .documentation = "Randomizes positions in evaluations as well. False: only training "
                        "randomizes them; evaluations count tokens from 0."},
  };
}

catalogue::ParameterEntry DistancesParameter() {
  return {.name = "distances",
          .default_value = std::string("positions"),
          .documentation =
              "Distance between tokens with randomized positions. \"positions\": difference of the "
              "drawn positions of key and query, as in the paper. \"offsets\": tokens m places "
              "apart have the m-th drawn distance, as in the paper's published code.",
          .allowed = {"positions", "offsets"}};
}

catalogue::ParameterEntry DrawsParameter() {
  return {.name = "draws",
          .default_value = std::string("shared"),
          .documentation =
              "Draws of randomized positions per batch. \"shared\": one for all blocks, as in the "
              "paper. \"per_block\": one for each block, as in the paper's published code.",
          .allowed = {"shared", "per_block"}};
}

void CheckRandomizedOptions(const catalogue::Parameters& parameters, absl::string_view path,
                            std::vector<catalogue::Problem>& problems) {
  if (Get(parameters, "randomized", false)) return;
  const auto refuse = [&](absl::string_view option, absl::string_view what) {
    problems.push_back({.field = absl::StrCat(path, ".", option),
                        .description = absl::StrCat("only randomized positions can be ", what,
                                                    "; set randomized: true, or leave it out")});
  };
  if (!Get(parameters, "sorted", true)) refuse("sorted", "unsorted");
  if (!Get(parameters, "randomized_at_evaluation", true)) {
    refuse("randomized_at_evaluation", "plain at evaluation");
  }
  if (Get(parameters, "draws", std::string()) == "per_block") {
    refuse("draws", "drawn for each block");
  }
}

void CheckPositions(const catalogue::Parameters& parameters, int64_t longest_sequence,
                    absl::string_view path, std::vector<catalogue::Problem>& problems) {
  CheckRandomizedOptions(parameters, path, problems);
  const PositionPolicy policy(parameters);
  if (!policy.randomized() || longest_sequence <= policy.max_position()) return;
  problems.push_back(
      {.field = absl::StrCat(std::string(path), ".max_position"),
       .description = absl::StrCat(
           policy.max_position(), " positions are too few for the longest sequence, ",
           longest_sequence,
           " tokens of input and output; use a larger max_position or shorter lengths")});
}

void CheckEvenWidth(int64_t d_model, absl::string_view path,
                    std::vector<catalogue::Problem>& problems) {
  if (d_model % 2 == 0) return;
  problems.push_back({.field = std::string(path),
                      .description = absl::StrCat("needs an even d_model (a sine and a cosine for "
                                                  "each frequency); the network's is ",
                                                  d_model)});
}

PositionPolicy::PositionPolicy(const catalogue::Parameters& encoding_parameters, int64_t blocks)
    : randomized_(Get(encoding_parameters, "randomized", false)),
      max_position_(Get(encoding_parameters, "max_position", int64_t{0})),
      sorted_(Get(encoding_parameters, "sorted", true)),
      at_evaluation_(Get(encoding_parameters, "randomized_at_evaluation", true)),
      offsets_(Get(encoding_parameters, "distances", std::string()) == "offsets"),
      draws_(randomized_ && Get(encoding_parameters, "draws", std::string()) == "per_block" ? blocks
                                                                                            : 1) {}

std::vector<int64_t> PositionPolicy::Plain(int64_t tokens) {
  std::vector<int64_t> positions(static_cast<size_t>(tokens));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

std::vector<int64_t> PositionPolicy::Draw(random::Stream stream, int64_t tokens) const {
  if (!randomized_) return Plain(tokens);
  if (!offsets_) return random::SampleWithoutReplacement(stream, max_position_, tokens, sorted_);
  std::vector<int64_t> positions = {0};
  for (const int64_t offset :
       random::SampleWithoutReplacement(stream, max_position_ - 1, tokens - 1, sorted_)) {
    positions.push_back(offset + 1);
  }
  return positions;
}

std::vector<int64_t> PositionPolicy::DrawBatch(uint64_t seed, random::Purpose purpose,
                                               uint64_t step, int64_t tokens) const {
  const bool plain = purpose != random::Purpose::kTrainingPositions && !at_evaluation_;
  std::vector<int64_t> batch;
  for (int64_t s = 0; s < draws_; ++s) {
    const std::vector<int64_t> draw =
        plain ? Plain(tokens)
              : Draw(random::Stream(seed, purpose, step, static_cast<uint32_t>(s)), tokens);
    batch.insert(batch.end(), draw.begin(), draw.end());
  }
  return batch;
}

}  // namespace lengthwise::models
