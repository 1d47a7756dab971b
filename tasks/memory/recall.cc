// Tasks that ask for parts of the input: associative recall, flip-flop language, selective copying.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "random/stream.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/function_task.h"
#include "tasks/task.h"

namespace lengthwise::tasks::memory {
namespace {

struct RecallSettings {
  int32_t vocabulary;
  int64_t pairs, updates;
  double power;
  bool compositional, random_fillers;
};

// A key has one token, or two if it is compositional. The context is a list of keys, each followed
// by its value. Behind it, slots of the same size hold a key, which asks for its value, or fillers.
class AssociativeRecallTask final : public TransductionTask {
 public:
  explicit AssociativeRecallTask(const RecallSettings& settings)
      : settings_(settings),
        key_(settings.compositional ? 2 : 1),
        ids_(settings.vocabulary / (key_ + 1)),
        values_(settings.vocabulary - key_ * ids_) {}

  int32_t input_size() const override { return settings_.vocabulary; }
  int32_t output_size() const override { return settings_.vocabulary; }
  int64_t InputLength(int64_t n) const override {
    const int64_t shortest = Slot() * (settings_.updates > 0 ? 3 : 2);
    return std::max(n - n % 2, shortest + shortest % 2);
  }
  int64_t OutputLength(int64_t n) const override { return InputLength(n); }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    const Counts counts = CountsOf(InputLength(n));
    const auto pairs = static_cast<size_t>(counts.pairs);
    const std::vector<std::array<int32_t, 2>> keys = DrawKeys(counts.pairs, stream);
    std::vector<int64_t> values =
        random::SampleWithoutReplacement(stream, values_, counts.pairs, /*sorted=*/false);
    std::fill(input.begin(), input.end(), 0);
    size_t place = 0;
    const auto write = [&](size_t pair) {
      for (int32_t i = 0; i < key_; ++i) input[place++] = keys[pair][static_cast<size_t>(i)];
      input[place++] = key_ * ids_ + static_cast<int32_t>(values[pair]);
    };
    for (size_t pair = 0; pair < pairs; ++pair) write(pair);
    // As in the released code, update i avoids the first value of pair i, whichever it updates.
    const std::vector<int64_t> avoided = values;
    size_t update = 0;
    for (const int64_t pair : random::SampleWithoutReplacement(stream, counts.pairs, counts.updates,
                                                               /*sorted=*/false)) {
      const int64_t value = stream.Between(0, values_ - 2);
      values[static_cast<size_t>(pair)] = value + (value >= avoided[update++] ? 1 : 0);
      write(static_cast<size_t>(pair));
    }
    // The slot of each key, drawn one after the other without replacement, with weights
    // (slot + 1)^(power - 1). Exponential variables of these rates are in the order of such draws.
    std::vector<std::pair<double, size_t>> slots(static_cast<size_t>(counts.slots));
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      const double wait = -std::log(1.0 - stream.NextDouble());
      slots[slot] = {wait * std::pow(static_cast<double>(slot + 1), 1 - settings_.power), slot};
    }
    std::partial_sort(slots.begin(), slots.begin() + counts.pairs, slots.end());
    for (size_t pair = 0; pair < pairs; ++pair) {
      const size_t at = place + slots[pair].second * static_cast<size_t>(Slot());
      std::copy_n(keys[pair].begin(), key_, input.begin() + static_cast<ptrdiff_t>(at));
    }
    Solve(input, target);
    if (!settings_.random_fillers) return;
    const auto vocabulary = static_cast<uint32_t>(settings_.vocabulary);
    for (int32_t& token : input) {
      if (token == 0) token = static_cast<int32_t>(stream.Below(vocabulary));
    }
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    const Counts counts = CountsOf(static_cast<int64_t>(input.size()));
    const auto slot = static_cast<size_t>(Slot()), last = slot - 1;
    const auto context = static_cast<size_t>(counts.pairs + counts.updates) * slot;
    std::fill(target.begin(), target.end(), 0);
    std::map<std::pair<int32_t, int32_t>, int32_t> values;
    for (size_t at = 0; at + slot <= input.size(); at += slot) {
      const std::pair key(input[at], input[at + last - 1]);
      if (at < context) {
        values[key] = input[at + last];
      } else if (const auto found = values.find(key); found != values.end()) {
        target[at + last - 1] = found->second;
      }
    }
  }

  // Every value is above 0.
  void Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const override {
    std::transform(target.begin(), target.end(), mask.begin(),
                   [](int32_t token) { return static_cast<uint8_t>(token != 0); });
  }

 private:
  struct Counts {
    int64_t pairs, updates, slots;
  };

  int64_t Slot() const { return key_ + 1; }

  // As many pairs as asked for, or as many as have room. Compositional keys form a square.
  Counts CountsOf(int64_t length) const {
    Counts counts{};
    for (int64_t side = 1;; ++side) {
      const int64_t pairs = settings_.compositional ? side * side : side;
      const int64_t updates = std::min(settings_.updates, pairs);
      const int64_t slots = length / Slot() - pairs - updates;
      if (side > 1 &&
          (pairs > settings_.pairs || slots < pairs || side > ids_ - 1 || pairs > values_)) {
        return counts;
      }
      counts = {pairs, updates, slots};
    }
  }

  std::vector<std::array<int32_t, 2>> DrawKeys(int64_t pairs, random::Stream& stream) const {
    std::vector<std::array<int32_t, 2>> keys;
    // 0 is the filler, so the first tokens of keys start at 1.
    const auto side = settings_.compositional
                          ? static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(pairs))))
                          : pairs;
    const auto first = random::SampleWithoutReplacement(stream, ids_ - 1, side, /*sorted=*/false);
    if (!settings_.compositional) {
      for (const int64_t id : first) keys.push_back({static_cast<int32_t>(id) + 1, 0});
      return keys;
    }
    const auto second = random::SampleWithoutReplacement(stream, ids_, side, /*sorted=*/false);
    for (const int64_t place : random::SampleWithoutReplacement(stream, pairs, pairs, false)) {
      keys.push_back({static_cast<int32_t>(first[static_cast<size_t>(place / side)]) + 1,
                      static_cast<int32_t>(second[static_cast<size_t>(place % side)]) + ids_});
    }
    return keys;
  }

  const RecallSettings settings_;
  const int32_t key_;     // tokens of a key
  const int32_t ids_;     // ids for each token of a key; 0 is none of the first token's
  const int32_t values_;  // the last ids
};

// Tokens as the authors' data card numbers them.
enum : int32_t { kWrite, kRead, kIgnore, kZero, kOne };

void DrawFlipFlop(double ignore, random::Stream& stream, absl::Span<int32_t> input) {
  int32_t memory = 0;
  for (size_t i = 0; i + 1 < input.size(); i += 2) {
    const double u = i == 0 ? 1 : stream.NextDouble();
    input[i] = u < ignore ? kIgnore : u < ignore + (1 - ignore) / 2 ? kRead : kWrite;
    const auto bit = static_cast<int32_t>(input[i] == kRead ? memory : stream.Below(2));
    if (input[i] == kWrite) memory = bit;
    input[i + 1] = kZero + bit;
  }
  input.back() = kRead;
}

void SolveFlipFlop(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  target[0] = 0;
  for (size_t i = 0; i + 1 < input.size(); i += 2) {
    if (input[i] == kWrite) target[0] = input[i + 1] == kOne ? 1 : 0;
  }
}

void DrawAmongNoise(int64_t tokens, int32_t size, random::Stream& stream,
                    absl::Span<int32_t> input) {
  std::fill(input.begin(), input.end(), 0);
  const auto n = static_cast<int64_t>(input.size());
  for (const int64_t place :
       random::SampleWithoutReplacement(stream, n, std::min(n, tokens), /*sorted=*/true)) {
    input[static_cast<size_t>(place)] = static_cast<int32_t>(stream.Between(1, size - 1));
  }
}

void CopyTokens(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  auto place = target.begin();
  for (const int32_t token : input) {
    if (token != 0 && place != target.end()) *place++ = token;
  }
  std::fill(place, target.end(), 0);
}

}  // namespace

TaskEntry AssociativeRecall() {
  return {
      {.name = "associative_recall",
       .title = "Associative Recall",
       .documentation =
           "Multi-query associative recall: the input is pairs of key and value, then keys between "
           "fillers (token 0). At each of these keys the target is its value; elsewhere it is 0, "
           "which the loss counts and the accuracy does not. Arora et al. 2023, \"Zoology\" (arXiv "
           "2312.04927), section 3; samples and ids follow the released code.",
       .parameters =
           {{.name = "vocabulary",
             .default_value = int64_t{512},
             .documentation = "Number of tokens: 0, then keys, then values, half of all. The paper "
                              "uses 8192.",
             .minimum = 6,
             .maximum = 8192},
            {.name = "pairs",
             .default_value = int64_t{4},
             .documentation = "Number of keys. Inputs shorter than four tokens a key have fewer.",
             .minimum = 1,
             .maximum = 1024},
            {.name = "power",
             .default_value = 0.01,
             .documentation = "Exponent a: a key is asked for in the slot g behind the pairs with "
                              "a weight of (g + 1)^(a - 1). 1: all slots are equally likely.",
             .minimum = 0,
             .maximum = 1},
            {.name = "random_fillers",
             .default_value = false,
             .documentation = "Draws fillers from all tokens, so that a key can stand there "
                              "unasked."},
            {.name = "updates",
             .default_value = int64_t{0},
             .documentation = "Number of keys, at most all, that get another value behind the "
                              "pairs; the last value counts. Above 0 this is the released code's "
                              "forgetting form.",
             .minimum = 0,
             .maximum = 1024},
            {.name = "compositional",
             .default_value = false,
             .documentation = "Makes a key of two tokens, from every combination of as many first "
                              "and second ones: the released code's compositional form. The "
                              "vocabulary has thirds, and `pairs` is rounded down to a square."}}},
      TaskKind::kTransduction,
      "",
      1.0 / 256,
      [](const catalogue::Parameters& parameters) {
        return std::make_unique<AssociativeRecallTask>(
            RecallSettings{.vocabulary = static_cast<int32_t>(parameters.Int("vocabulary")),
                           .pairs = parameters.Int("pairs"),
                           .updates = parameters.Int("updates"),
                           .power = parameters.Double("power"),
                           .compositional = parameters.Bool("compositional"),
                           .random_fillers = parameters.Bool("random_fillers")});
      }};
}

TaskEntry FlipFlop() {
  return {
      {.name = "flip_flop",
       .title = "Flip-Flop Language",
       .documentation =
           "Reads a memory of one bit. The input is instructions with a bit: 0 write, 1 read, 2 "
           "ignore, and 3, 4 for the bits 0, 1. The first writes; the last reads, and its bit is "
           "the target: that of the last write. Liu et al. 2023, \"Exposing Attention Glitches "
           "with Flip-Flop Language Modeling\" (arXiv 2306.00946), section 3.",
       .parameters = {{.name = "ignore",
                       .default_value = 0.8,
                       .documentation = "Probability of \"ignore\" between the first and the last "
                                        "instruction; reads and writes share the rest.",
                       .minimum = 0,
                       .maximum = 1}}},
      TaskKind::kTransduction,
      "regular",
      0.5,
      [](const catalogue::Parameters& parameters) {
        return chomsky::FromFunctions(
            {.input_size = kOne + 1,
             .output_size = 2,
             .output_length = chomsky::OneToken,
             .solve = SolveFlipFlop,
             .draw = std::bind_front(DrawFlipFlop, parameters.Double("ignore")),
             // Every instruction has a bit, except the last read, which asks for it.
             .input_length = [](int64_t n) { return std::max<int64_t>(n - (n + 1) % 2, 3); }});
      }};
}

TaskEntry SelectiveCopy() {
  return {
      {.name = "selective_copy",
       .title = "Selective Copying",
       .documentation =
           "Copies, in order, the tokens that stand at random places among noise (token 0). Gu and "
           "Dao 2023, \"Mamba\" (arXiv 2312.00752), section 3.1; samples follow the authors' "
           "earlier code for S4. Tokens are independent and uniform.",
       .parameters = {{.name = "vocabulary",
                       .default_value = int64_t{16},
                       .documentation = "Number of tokens, including the noise and the marker that "
                                        "asks for an answer.",
                       .minimum = 4,
                       .maximum = 1000},
                      {.name = "tokens",
                       .default_value = int64_t{16},
                       .documentation = "Number of tokens to copy. A shorter input has no noise.",
                       .minimum = 1,
                       .maximum = 1000}}},
      TaskKind::kTransduction,
      "",
      1.0 / 14,
      [](const catalogue::Parameters& parameters) {
        const int64_t tokens = parameters.Int("tokens");
        // The empty tokens behind the input are the last token of the vocabulary, the marker.
        const auto size = static_cast<int32_t>(parameters.Int("vocabulary")) - 1;
        return chomsky::FromFunctions(
            {.input_size = size,
             .output_size = size,
             .output_length = [tokens](int64_t n) { return std::min(n, tokens); },
             .solve = CopyTokens,
             .draw = std::bind_front(DrawAmongNoise, tokens, size)});
      }};
}

}  // namespace lengthwise::tasks::memory
