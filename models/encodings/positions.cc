// The choices of positions of n tokens p = 0, 1, ..., n - 1, with L = max_position:
//
//   counted        p
//   subset         a sorted random subset of {0, ..., L - 1} (randomized positional encodings,
//                  Ruoss et al. 2023, section 3; unsorted in Table 3; with a learned table the
//                  labels of Li and McClelland 2022)
//   uniform_reals  n real numbers uniform in [0, L), sorted (Random Float Sampling, Shimizu et al.
//                  2026)
//   shift          p + k, k ~ U{0, ..., K} (SHAPE, Kiyono et al. 2021)
//   augmented      s (p + D + e_p), D ~ U(-global, global), e_p ~ U(-local, local), ln s ~
//                  U(-ln scaling, ln scaling) (CAPE, Likhomanenko et al. 2021)
//   skips          p for the first c tokens, p + g for the others, c ~ U{1, ..., ceil(n / 2)}, g ~
//                  U{0, ..., L - n} (PoSE, Zhu et al. 2024; the published code's two chunks)
//   data           the example's ids, those above 0 plus k ~ U{0, ..., K} (Abacus, McLeish et al.
//                  2024; position coupling, Cho et al. 2024)
//
// `subset` and `uniform_reals` are also drawn in evaluations. Those of the others have counted
// positions, or ids without an offset.
#include "models/encodings/positions.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lengthwise::models {
namespace {

template <typename Value>
Value Get(const catalogue::Parameters& parameters, absl::string_view name, Value absent) {
  const auto found = parameters.values().find(name);
  return found == parameters.values().end() ? absent : std::get<Value>(found->second);
}

// Parameters of older stored specifications do not have these names. A resolved specification omits
// them while they have these defaults.
constexpr int64_t kNoOffset = 0;
constexpr int64_t kShapeOffset = 500;
constexpr double kGlobalShift = 5, kLocalShift = 0.5, kScaling = 1.03;

// The values of the parameter "positions", in the order of PositionPolicy::Choice.
const std::vector<std::string>& Choices() {
  static const auto& names = *new std::vector<std::string>{
      "counted", "subset", "uniform_reals", "shift", "augmented", "skips", "data"};
  return names;
}

// An option of some choices.
struct Option {
  std::string name;
  catalogue::ParameterValue unused;  // its value elsewhere
  std::vector<std::string> choices;
};

const std::vector<Option>& Options() {
  static const auto& options = *new std::vector<Option>{
      {"sorted", true, {"subset"}},
      {"randomized_at_evaluation", true, {"subset", "uniform_reals"}},
      // Counted, where offsets are the same distances, because stored specifications may have it.
      {"distances", std::string("positions"), {"counted", "subset"}},
      {"draws", std::string("shared"), {Choices().begin() + 1, Choices().end() - 1}},
      {"random_offset", kNoOffset, {"shift", "data"}},
      {"global_shift", kGlobalShift, {"augmented"}},
      {"local_shift", kLocalShift, {"augmented"}},
      {"scaling", kScaling, {"augmented"}},
      {"centered", false, {"augmented"}}};
  return options;
}

}  // namespace

std::vector<catalogue::ParameterEntry> PositionParameters() {
  return {
      {.name = "positions",
       .default_value = Choices()[0],
       .documentation =
           "How positions are chosen, once per batch. counted: 0, 1, 2, .... subset: a sorted "
           "random subset of {0, ..., max_position - 1} (randomized positional encodings, section "
           "3). uniform_reals: sorted real numbers from 0 to max_position (Random Float Sampling, "
           "2026). The rest only in training, with counted positions in evaluations: shift: all "
           "plus one random offset (SHAPE, 2021); augmented: scaled, shifted and jittered (CAPE, "
           "2021); skips: two chunks with a random gap (PoSE, 2024). data: the ids that the "
           "examples have, from a file or a task's coupling (Abacus; position coupling, 2024).",
       .allowed = Choices(),
       .omitted = true},
      {.name = "randomized",
       .default_value = false,
       .documentation = "true is another word for positions: subset."},
      {.name = "max_position",
       .default_value = int64_t{2048},
       .documentation = "L: subset draws positions from 0 to L - 1, uniform_reals below L, and "
                        "skips end below L. At least the tokens (input and output) of the longest "
                        "sequence.",
       .minimum = 1,
       .maximum = 1 << 20},
      {.name = "sorted",
       .default_value = true,
       .documentation =
           "Sorts a subset in ascending order. False keeps its random order (Table 3)."},
      {.name = "randomized_at_evaluation",
       .default_value = true,
       .documentation = "Draws positions in evaluations as well. False: only training draws them; "
                        "evaluations count tokens from 0. For subset and uniform_reals."},
      {.name = "random_offset",
       .default_value = kNoOffset,
       .documentation = "K: shift adds an offset from 0 to K to all positions, data to those above "
                        "0, in training. shift takes 500 for 0.",
       .minimum = 0,
       .maximum = 1 << 20,
       .omitted = true},
      {.name = "global_shift",
       .default_value = kGlobalShift,
       .documentation = "augmented: largest shift of all positions, in both directions. The "
                        "defaults of these options are those of CAPE's experiments on text.",
       .minimum = 0,
       .maximum = 1 << 20,
       .omitted = true},
      {.name = "local_shift",
       .default_value = kLocalShift,
       .documentation = "augmented: largest shift of each position alone, in both directions. At "
                        "most 0.5 keeps their order.",
       .minimum = 0,
       .maximum = 1 << 20,
       .omitted = true},
      {.name = "scaling",
       .default_value = kScaling,
       .documentation = "augmented: largest factor of all positions; the smallest is its inverse.",
       .minimum = 1,
       .maximum = 1000,
       .omitted = true},
      {.name = "centered",
       .default_value = false,
       .documentation = "augmented: subtracts the mean of a sequence's positions first, in "
                        "evaluations too, as CAPE's experiments on speech and images do.",
       .omitted = true},
  };
}

catalogue::ParameterEntry DistancesParameter() {
  return {.name = "distances",
          .default_value = std::string("positions"),
          .documentation =
              "Distance between tokens with positions: subset. \"positions\": difference of the "
              "drawn positions of key and query, as in the paper. \"offsets\": tokens m places "
              "apart have the m-th drawn distance, as in the paper's published code.",
          .allowed = {"positions", "offsets"}};
}

catalogue::ParameterEntry DrawsParameter(bool in_every_block) {
  catalogue::ParameterEntry entry = {
      .name = "draws",
      .default_value = std::string("shared"),
      .documentation =
          "Draws of positions per batch. \"shared\": one for all, as in the paper. "
          "\"per_sequence\": one for each sequence.",
      .allowed = {"shared", "per_sequence"},
      .omitted = !in_every_block};
  if (in_every_block) {
    entry.documentation += " \"per_block\": one for each block, as in the paper's published code.";
    entry.allowed.push_back("per_block");
  }
  return entry;
}

void CheckPositions(const catalogue::Parameters& parameters, int64_t longest_sequence,
                    absl::string_view path, std::vector<catalogue::Problem>& problems) {
  const std::string name(PositionPolicy(parameters).name());
  if (Get(parameters, "randomized", false) && name != "subset") {
    AddProblem(problems, absl::StrCat(path, ".randomized"),
               "means positions: subset, but positions is ", name, "; remove one of the two");
  }
  for (const Option& option : Options()) {
    const auto given = parameters.values().find(option.name);
    if (given == parameters.values().end() || given->second == option.unused ||
        absl::c_linear_search(option.choices, name)) {
      continue;
    }
    AddProblem(problems, absl::StrCat(path, ".", option.name),
               "needs positions: ", absl::StrJoin(option.choices, ", "), "; positions is ", name,
               ". Change it, or leave ", option.name, " out");
  }
  const int64_t positions = Get(parameters, "max_position", int64_t{0});
  if ((name != "subset" && name != "skips") || longest_sequence <= positions) return;
  AddProblem(problems, absl::StrCat(path, ".max_position"), positions,
             " positions are too few for the longest sequence, ", longest_sequence,
             " tokens of input and output; use a larger max_position or shorter lengths");
}

void CheckIntegerPositions(const catalogue::Parameters& parameters, absl::string_view what,
                           absl::string_view path, std::vector<catalogue::Problem>& problems) {
  const PositionPolicy policy(parameters);
  if (!policy.real()) return;
  AddProblem(problems, absl::StrCat(path, ".positions"), policy.name(), " makes real numbers, but ",
             what, " has a place for each integer; use subset, shift or skips");
}

void CheckEvenWidth(int64_t d_model, absl::string_view path,
                    std::vector<catalogue::Problem>& problems) {
  if (d_model % 2 == 0) return;
  AddProblem(problems, path,
             "needs an even d_model (a sine and a cosine for "
             "each frequency); the network's is ",
             d_model);
}

PositionPolicy::PositionPolicy(const catalogue::Parameters& encoding_parameters, int64_t blocks)
    : choice_(static_cast<Choice>(
          absl::c_find(Choices(), Get(encoding_parameters, "positions", Choices()[0])) -
          Choices().begin())),
      max_position_(Get(encoding_parameters, "max_position", int64_t{0})),
      sorted_(Get(encoding_parameters, "sorted", true)),
      at_evaluation_(Get(encoding_parameters, "randomized_at_evaluation", true)),
      offsets_(Get(encoding_parameters, "distances", std::string()) == "offsets"),
      random_offset_(Get(encoding_parameters, "random_offset", kNoOffset)),
      global_shift_(Get(encoding_parameters, "global_shift", kGlobalShift)),
      local_shift_(Get(encoding_parameters, "local_shift", kLocalShift)),
      scaling_(Get(encoding_parameters, "scaling", kScaling)),
      centered_(Get(encoding_parameters, "centered", false)),
      each_(Get(encoding_parameters, "draws", std::string()) == "per_sequence"),
      draws_(Get(encoding_parameters, "draws", std::string()) == "per_block" ? blocks : 1) {
  if (choice_ == Choice::kCounted && Get(encoding_parameters, "randomized", false)) {
    choice_ = Choice::kSubset;
  }
  if (choice_ == Choice::kCounted) draws_ = 1;
  if (choice_ != Choice::kSubset && choice_ != Choice::kUniformReals) at_evaluation_ = false;
  if (choice_ == Choice::kShift && random_offset_ == kNoOffset) random_offset_ = kShapeOffset;
}

absl::string_view PositionPolicy::name() const { return Choices()[static_cast<size_t>(choice_)]; }

PositionPolicy::Bounds PositionPolicy::BoundsOf(int64_t tokens) const {
  const auto last = static_cast<double>(tokens - 1);
  const auto end = static_cast<double>(max_position_);
  switch (choice_) {
    case Choice::kCounted:
      return {0, last};
    case Choice::kSubset:
    case Choice::kSkips:
    case Choice::kData:
      return {0, end - 1};
    case Choice::kUniformReals:
      return {0, at_evaluation_ ? end : std::max(end, last)};
    case Choice::kShift:
      return {0, last + static_cast<double>(random_offset_)};
    default:
      break;
  }
  const double shift = global_shift_ + local_shift_;
  return {scaling_ * (-shift - (centered_ ? last / 2 : 0)), scaling_ * (last + shift)};
}

std::vector<double> PositionPolicy::Plain(int64_t tokens) const {
  std::vector<double> positions(static_cast<size_t>(tokens));
  std::iota(positions.begin(), positions.end(),
            centered_ ? -static_cast<double>(tokens - 1) / 2 : 0);
  return positions;
}

std::vector<double> PositionPolicy::Draw(random::Stream stream, int64_t tokens) const {
  std::vector<double> positions = Plain(tokens);
  switch (choice_) {
    case Choice::kCounted:
    case Choice::kData:
      break;
    case Choice::kSubset: {
      const int64_t apart = offsets_ ? 1 : 0;
      const std::vector<int64_t> drawn =
          random::SampleWithoutReplacement(stream, max_position_ - apart, tokens - apart, sorted_);
      for (size_t i = 0; i < drawn.size(); ++i) {
        positions[i + static_cast<size_t>(apart)] = static_cast<double>(drawn[i] + apart);
      }
      break;
    }
    case Choice::kUniformReals:
      for (double& position : positions) {
        position = stream.NextDouble() * static_cast<double>(max_position_);
      }
      absl::c_sort(positions);
      break;
    case Choice::kShift: {
      const auto offset = static_cast<double>(stream.Between(0, random_offset_));
      for (double& position : positions) position += offset;
      break;
    }
    case Choice::kAugmented: {
      const auto within = [&](double limit) { return (2 * stream.NextDouble() - 1) * limit; };
      const double shift = within(global_shift_), scale = std::exp(within(std::log(scaling_)));
      for (double& position : positions) {
        position = scale * (position + shift + within(local_shift_));
      }
      break;
    }
    case Choice::kSkips: {
      const int64_t chunk = stream.Between(1, (tokens + 1) / 2);
      const auto gap = static_cast<double>(stream.Between(0, max_position_ - tokens));
      for (auto place = static_cast<size_t>(chunk); place < positions.size(); ++place) {
        positions[place] += gap;
      }
      break;
    }
  }
  return positions;
}

std::vector<double> PositionPolicy::DrawRows(uint64_t seed, random::Purpose purpose, uint64_t step,
                                             int64_t first, int64_t rows, int64_t tokens) const {
  const bool plain = purpose != random::Purpose::kTrainingPositions && !at_evaluation_;
  std::vector<double> all;
  for (int64_t row = first; row < first + rows; ++row) {
    const random::Stream stream(seed, purpose, step, static_cast<uint32_t>(row));
    const std::vector<double> drawn = plain ? Plain(tokens) : Draw(stream, tokens);
    all.insert(all.end(), drawn.begin(), drawn.end());
  }
  return all;
}

std::vector<double> PositionPolicy::WithOffset(absl::Span<const int32_t> ids, uint64_t seed,
                                               random::Purpose purpose, uint64_t step) const {
  const int64_t offset = purpose == random::Purpose::kTrainingPositions
                             ? random::Stream(seed, purpose, step).Between(0, random_offset_)
                             : 0;
  std::vector<double> positions;
  positions.reserve(ids.size());
  for (const int32_t id : ids) {
    positions.push_back(static_cast<double>(id > 0 ? std::min(id + offset, max_position_ - 1) : 0));
  }
  return positions;
}

}  // namespace lengthwise::models
