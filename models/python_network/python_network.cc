#include "models/python_network/python_network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "ATen/ops/cat.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "models/encodings/positions.h"
#include "random/stream.h"

namespace lengthwise::models {
namespace {

using nlohmann::json;

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Seeds the generators of the process, which take 32 bits.
uint32_t SeedOf(uint64_t seed, random::Purpose purpose, uint64_t step, int64_t row) {
  return random::Stream(seed, purpose, step, static_cast<uint32_t>(row)).NextUint32();
}

// What an answer's next token depends on.
struct SeenTokens : DecodingCache {
  at::Tensor tokens;
  at::Tensor positions;
};

}  // namespace

PythonNetwork::PythonNetwork(const Options& options, const catalogue::Parameters& parameters,
                             absl::string_view encoding,
                             const catalogue::Parameters& encoding_parameters,
                             const NetworkShape& shape, ParameterLayout& layout)
    : child_(std::make_shared<PythonProcess>(options.interpreter, options.limit)),
      warn_(options.warn),
      outputs_(shape.output_columns),
      heads_(parameters.Int("heads")),
      real_positions_(PositionPolicy(encoding_parameters).real()) {
  std::vector<uint32_t> seeds;
  for (const uint64_t seed : options.weight_seeds) {
    seeds.push_back(SeedOf(seed, random::Purpose::kWeights, 0, 0));
  }
  const std::string& arguments = parameters.String("arguments");
  const json declared =
      child_->Call({{"do", "build"},
                    // The process has another working directory.
                    {"archive", std::filesystem::absolute(options.archive).string()},
                    {"class", parameters.String("class")},
                    {"arguments", json::parse(arguments.empty() ? "{}" : arguments)},
                    {"vocabulary", shape.input_columns},
                    {"outputs", outputs_},
                    {"dtype", options.precision},
                    {"device", options.device},
                    {"heads", heads_},
                    {"numbers", shape.has_numbers},
                    {"seeds", seeds}});
  for (const json& slot : declared["state"]) {
    layout.Add(slot["name"], slot["shape"], {}, slot["trained"]);
  }
  gives_attention_ = declared["attention"];
  takes_cache_ = declared["cache"];
  if (encoding != "own") {
    encoding_ = CreateEncoding(encoding, encoding_parameters,
                               {.blocks = 1,
                                .heads = heads_,
                                .d_model = 8 * heads_,
                                .longest_sequence = shape.longest_sequence},
                               layout)
                    .value();
  }
  std::set<std::string> names;
  for (const ParameterLayout::Slot& slot : layout.slots()) {
    if (names.insert(slot.name).second) continue;
    throw NetworkError(absl::StrCat("the encoding and the module both have a parameter `",
                                    slot.name, "`: rename the module's"),
                       /*permanent=*/true);
  }
  versions_ = absl::StrCat("torch ", declared["torch"].get<std::string>(), ", Python ",
                           declared["python"].get<std::string>());
  if (options.device != "cpu") {
    absl::StrAppend(&versions_, ", on ", declared["device"].get<std::string>());
  }
}

ParameterArena::Allocate PythonNetwork::Allocator() {
  return [child = child_](at::IntArrayRef shape, const at::TensorOptions& options) {
    const int64_t offset = Aligned(child->state().bytes());
    const auto item = static_cast<int64_t>(options.dtype().itemsize());
    child->state().Reserve(offset + c10::multiply_integers(shape) * item);
    // The arena keeps the process and its memory.
    return at::from_blob(
        child->state().start() + offset, shape, [child](void*) {}, options);
  };
}

void PythonNetwork::Bind(ParameterArena& arena) {
  layout_ = &arena.layout();
  rows_ = arena.parameters();
  const auto item = static_cast<int64_t>(arena.parameters().element_size());
  const auto offset = [&](const at::Tensor& rows) {
    return (static_cast<const uint8_t*>(rows.const_data_ptr()) - child_->state().start()) / item;
  };
  std::vector<int64_t> offsets;
  for (const auto& slot : arena.layout().slots()) offsets.push_back(slot.offset);
  (void)child_->Call({{"do", "bind"},
                      {"row", arena.layout().row_size()},
                      {"offsets", offsets},
                      {"parameters", offset(arena.parameters())},
                      {"gradients", offset(arena.gradients())}});
}

void PythonNetwork::WarnOfNumbers(int64_t member) const {
  if (warned_) return;
  warned_ = true;
  for (const auto& slot : layout_->slots()) {
    const at::Tensor row = rows_.select(0, member).narrow(0, slot.offset, slot.size);
    if (at::isfinite(row).all().item<bool>()) continue;
    return warn_(absl::StrCat("the loss is not finite; \"", slot.name,
                              "\" is the first parameter that is not"));
  }
  warn_("the loss is not finite although all parameters are: it arises in the forward pass");
}

void PythonNetwork::KeepAttention(int64_t member, const at::TensorOptions& options,
                                  Capture& capture) const {
  try {
    const std::vector<int64_t> shape =  // [layers, B, H, n, n]
        child_->Call({{"do", "attention"}, {"member", member}, {"at", used_}})["shape"];
    SharedMemory& memory = child_->inputs();
    memory.Reserve(used_ + c10::multiply_integers(shape) * options.dtype().itemsize());
    const at::Tensor maps = at::from_blob(memory.start() + used_, shape, options).clone();
    for (int64_t layer = 0; layer < maps.size(0); ++layer) {
      capture.attention_probabilities.push_back(maps.narrow(0, layer, 1));
    }
  } catch (const NetworkError& error) {
    warn_(absl::StrCat("no attention map: ", error.what()));
  }
}

at::Tensor PythonNetwork::Run(const ParameterSet& parameters, const NetworkInput& input,
                              const at::Tensor& positions, int64_t output_length,
                              const DropoutNumbers* dropout, const Pass& pass) const {
  const at::TensorOptions options = parameters.any().options().requires_grad(false);
  const auto item = static_cast<int64_t>(options.dtype().itemsize());
  // A parameter without numbers has no place.
  const at::Tensor& placed = *std::find_if(parameters.tensors().begin(), parameters.tensors().end(),
                                           [](const at::Tensor& one) { return one.numel() > 0; });
  const auto* row = static_cast<const uint8_t*>(placed.const_data_ptr());
  const int64_t member =
      (row - static_cast<const uint8_t*>(rows_.const_data_ptr())) / item / layout_->row_size();
  const bool training = dropout != nullptr && dropout->training();
  const at::Tensor read = (input.tokens.defined() ? input.tokens : input.numbers).contiguous();
  const int64_t rows = read.size(1), n = read.size(2);
  const int64_t before = std::max<int64_t>(0, pass.cached);
  // Of all sequences, [1, before + n], or of each, [B, before + n].
  const bool each = positions.dim() == 4;
  const at::Tensor drawn = positions.select(1, 0).flatten(0, -2);
  const at::Tensor places =
      drawn.narrow(1, before, n).to(real_positions_ ? at::kDouble : at::kLong).contiguous();
  at::Tensor bias = at::zeros({1, heads_, n, before + n}, options);
  if (encoding_ != nullptr) {
    bias = encoding_->Terms(each ? parameters.Copies(0, rows) : parameters, 0, drawn, before, n)
               .additive;
  }
  bias = each ? bias.expand({rows, heads_, n, before + n}) : bias.squeeze(0);
  const bool wants_bias = training && bias.requires_grad();
  const at::Tensor biases = bias.detach().contiguous();
  const std::vector<int64_t> shape = {1, rows, output_length, outputs_};
  const int64_t bytes = c10::multiply_integers(shape) * item;

  if (pass.number == 0) used_ = 0;
  SharedMemory& memory = child_->inputs();
  const auto take = [&](int64_t size) {
    const int64_t at = std::exchange(used_, Aligned(used_ + size));
    memory.Reserve(used_);
    return at;
  };
  const auto write = [&](const at::Tensor& numbers) {
    const int64_t at = take(static_cast<int64_t>(numbers.nbytes()));
    // A module without heads has no bias.
    if (numbers.numel() > 0) {
      std::memcpy(memory.start() + at, numbers.const_data_ptr(), numbers.nbytes());
    }
    return at;
  };
  const int64_t bias_at = write(biases);
  const int64_t logits_at = take(bytes), gradient_at = take(bytes);
  const uint32_t seed = dropout == nullptr ? 0
                                           : SeedOf(dropout->seeds[0], dropout->purpose,
                                                    dropout->step, dropout->first_sequence);
  (void)child_->Call({{"do", "forward"},
                      {"member", member},
                      {"pass", pass.number},
                      {"seed", seed},
                      {"training", training},
                      {"real_positions", real_positions_},
                      {"rows", rows},
                      {"tokens", n},
                      {"outputs", output_length},
                      {"positions", places.sizes().vec()},
                      {"bias", biases.sizes().vec()},
                      {"cached", pass.cached},
                      {"at",
                       {{"tokens", write(read)},
                        {"positions", write(places)},
                        {"logits", logits_at},
                        {"gradient", gradient_at},
                        {"bias", bias_at}}}});
  if (pass.capture != nullptr && pass.capture->keep_attention && gives_attention_) {
    KeepAttention(member, options, *pass.capture);
  }
  at::Tensor logits = at::from_blob(memory.start() + logits_at, shape, options);
  if (!training) return logits;
  // The process adds the gradients of the parameters to the arena.
  logits.set_requires_grad(true);
  logits.register_hook([=, this, number = pass.number](const at::Tensor& gradient) {
    if (!std::isfinite(gradient.sum().item<double>())) WarnOfNumbers(member);
    uint8_t* start = child_->inputs().start();
    std::memcpy(start + gradient_at, gradient.contiguous().const_data_ptr(),
                static_cast<size_t>(bytes));
    (void)child_->Call({{"do", "backward"}, {"pass", number}, {"bias", wants_bias}});
    if (!wants_bias) return;
    bias.backward(at::from_blob(start + bias_at, biases.sizes(), options));
  });
  return logits;
}

at::Tensor PythonLanguageModel::Forward(const ParameterSet& parameters,
                                        const ExampleGroups& examples, const at::Tensor& positions,
                                        const DropoutNumbers* dropout, Capture* capture) const {
  DropoutNumbers numbers = dropout == nullptr ? DropoutNumbers() : *dropout;
  std::vector<at::Tensor> logits;
  int64_t first = 0;
  for (const ExampleGroups::Group& group : examples.groups) {
    const int64_t count = group.examples * group.length;
    const NetworkInput input = {
        .tokens = examples.tokens.narrow(1, first, count).view({1, group.examples, group.length})};
    const auto number = static_cast<int64_t>(logits.size());
    const at::Tensor places =
        examples.own_positions
            ? positions.narrow(2, group.first_position, count).unflatten(2, {-1, group.length})
            : positions.narrow(2, group.first_position, group.length);
    logits.push_back(network_
                         ->Run(parameters, input, places, group.length,
                               dropout == nullptr ? nullptr : &numbers,
                               {.capture = capture, .number = number})
                         .flatten(1, 2));
    numbers.first_sequence += group.examples;
    first += count;
  }
  return at::cat(logits, 1);
}

std::unique_ptr<DecodingCache> PythonLanguageModel::StartDecoding(
    const at::Tensor& positions) const {
  auto seen = std::make_unique<SeenTokens>();
  seen->positions = positions;
  return seen;
}

at::Tensor PythonLanguageModel::Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                                       DecodingCache& cache) const {
  auto& seen = static_cast<SeenTokens&>(cache);
  const bool is_first = !seen.tokens.defined();
  // The module has one cache, so that of another text is made again.
  const bool continues = network_->takes_cache() && cached_ == &cache && !is_first;
  const int64_t before = continues ? seen.tokens.size(2) : 0;
  seen.tokens = is_first ? tokens : at::cat({seen.tokens, tokens}, 2);
  cached_ = &cache;
  const int64_t all = seen.tokens.size(2);
  return network_
      ->Run(parameters, {.tokens = seen.tokens.narrow(2, before, all - before)},
            seen.positions.narrow(-1, 0, all), 1, nullptr, {.cached = before})
      .select(2, 0)
      .clone();
}

}  // namespace lengthwise::models
