#include "models/python_network/python_network.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ATen/ops/cat.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/zeros.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "random/stream.h"
#include "torch/csrc/autograd/custom_function.h"

namespace lengthwise::models {
namespace {

using nlohmann::json;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Seeds the generators of the process, which take 32 bits.
uint32_t SeedOf(uint64_t seed, random::Purpose purpose, uint64_t step, int64_t row) {
  return random::Stream(seed, purpose, step, static_cast<uint32_t>(row)).NextUint32();
}

using BackwardPass = std::function<at::Tensor(const at::Tensor&)>;

// What the process's backward pass needs.
struct Backward : torch::CustomClassHolder {
  explicit Backward(BackwardPass given) : run(std::move(given)) {}
  const BackwardPass run;
};

// Logits whose backward pass runs in the process and returns the gradient of the bias, or an
// undefined tensor. `leaf` makes autograd call it; its gradient stays undefined, because the
// process adds those of the parameters to the arena.
class Computed : public torch::autograd::Function<Computed> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*leaf*/,
                            const at::Tensor& /*bias*/, const std::function<at::Tensor()>& compute,
                            const BackwardPass& backward) {
    context->saved_data["backward"] =
        c10::IValue::make_capsule(c10::make_intrusive<Backward>(backward));
    return compute();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->saved_data["backward"].toCapsule();
    const at::Tensor of_bias = static_cast<Backward*>(saved.get())->run(gradients[0]);
    return {at::Tensor(), of_bias, at::Tensor(), at::Tensor()};
  }
};

// What an answer's next token depends on.
struct SeenTokens : DecodingCache {
  at::Tensor tokens;
  at::Tensor positions;
};

absl::Status ToStatus(const NetworkError& error) {
  return error.permanent() ? absl::InvalidArgumentError(error.what())
                           : absl::UnavailableError(error.what());
}

}  // namespace

absl::StatusOr<std::unique_ptr<PythonNetwork>> PythonNetwork::Create(
    const Options& options, const catalogue::Parameters& parameters, absl::string_view encoding,
    const catalogue::Parameters& encoding_parameters, const NetworkShape& shape,
    ParameterLayout& layout) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<PythonProcess> child,
      PythonProcess::Start({.interpreter = options.interpreter, .call_limit = options.limit}));
  std::vector<uint32_t> seeds;
  for (const uint64_t seed : options.weight_seeds) {
    seeds.push_back(SeedOf(seed, random::Purpose::kWeights, 0, 0));
  }
  const std::string& arguments = parameters.String("arguments");
  json declared;
  try {
    declared = child->Call({{"do", "build"},
                            // The process has another working directory.
                            {"archive", std::filesystem::absolute(options.archive).string()},
                            {"class", parameters.String("class")},
                            {"arguments", json::parse(arguments.empty() ? "{}" : arguments)},
                            {"vocabulary", shape.input_columns},
                            {"outputs", shape.output_columns},
                            {"dtype", options.precision},
                            {"threads", 1},
                            {"heads", parameters.Int("heads")},
                            {"seeds", seeds}});
  } catch (const NetworkError& error) {
    return ToStatus(error);
  }
  std::unique_ptr<PythonNetwork> network(
      new PythonNetwork(std::move(child), options, shape.output_columns));
  for (const json& slot : declared["state"]) {
    layout.Add(slot["name"], slot["shape"], {}, slot["trained"]);
  }
  network->heads_ = parameters.Int("heads");
  if (encoding != "own") {
    ASSIGN_OR_RETURN(network->encoding_,
                     CreateEncoding(encoding, encoding_parameters,
                                    {.blocks = 1,
                                     .heads = network->heads_,
                                     .d_model = 8 * network->heads_,
                                     .longest_sequence = shape.longest_sequence},
                                    layout));
  }
  network->versions_ = absl::StrCat("torch ", declared["torch"].get<std::string>(), ", Python ",
                                    declared["python"].get<std::string>());
  return network;
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

absl::Status PythonNetwork::Bind(ParameterArena& arena) {
  layout_ = &arena.layout();
  rows_ = arena.parameters();
  const auto item = static_cast<int64_t>(arena.parameters().element_size());
  const auto offset = [&](const at::Tensor& rows) {
    return (static_cast<const uint8_t*>(rows.const_data_ptr()) - child_->state().start()) / item;
  };
  std::vector<int64_t> offsets;
  for (const auto& slot : arena.layout().slots()) offsets.push_back(slot.offset);
  try {
    (void)child_->Call({{"do", "bind"},
                        {"bytes", child_->state().bytes()},
                        {"row", arena.layout().row_size()},
                        {"offsets", offsets},
                        {"parameters", offset(arena.parameters())},
                        {"gradients", offset(arena.gradients())}});
  } catch (const NetworkError& error) {
    return ToStatus(error);
  }
  return absl::OkStatus();
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

at::Tensor PythonNetwork::ForwardPass(const ParameterSet& parameters, const NetworkInput& input,
                                      const at::Tensor& positions, int64_t output_length,
                                      const DropoutNumbers* dropout, int64_t pass) const {
  const at::Tensor& any = parameters.any();
  const auto item = static_cast<int64_t>(any.element_size());
  const auto* first = static_cast<const uint8_t*>(rows_.const_data_ptr());
  const int64_t member =
      (static_cast<const uint8_t*>(any.const_data_ptr()) - first) / item / layout_->row_size();
  const bool training = dropout != nullptr && dropout->training();
  const bool is_numbers = !input.tokens.defined();
  const at::Tensor read = (is_numbers ? input.numbers : input.tokens).contiguous();
  const int64_t rows = read.size(1), n = read.size(2);
  const std::vector<int64_t> shape = {1, rows, output_length, outputs_};
  const int64_t bytes = c10::multiply_integers(shape) * item;
  const int64_t tokens_at = pass == 0 ? 0 : used_;
  const int64_t positions_at = tokens_at + Aligned(static_cast<int64_t>(read.nbytes()));
  const int64_t logits_at = positions_at + Aligned(n * static_cast<int64_t>(sizeof(int64_t)));
  const int64_t gradient_at = logits_at + Aligned(bytes);
  // [1, H, n, n], the same for all sequences.
  at::Tensor bias = at::zeros({1, heads_, n, n}, any.options());
  if (encoding_ != nullptr) {
    bias = encoding_->Terms(parameters, 0, positions.select(1, 0), 0, n).additive;
  }
  const int64_t bias_at = gradient_at + Aligned(bytes);
  const auto bias_bytes = static_cast<int64_t>(bias.nbytes());
  const int64_t bias_gradient_at = bias_at + Aligned(bias_bytes);
  used_ = bias_gradient_at + Aligned(bias_bytes);
  const auto compute = [&] {
    SharedMemory& memory = child_->inputs();
    memory.Reserve(bias_gradient_at + bias_bytes);
    const at::Tensor biases = bias.contiguous();
    // A module without heads has none.
    if (biases.numel() > 0) {
      std::memcpy(memory.start() + bias_at, biases.const_data_ptr(), biases.nbytes());
    }
    const at::Tensor places = positions.contiguous();
    std::memcpy(memory.start() + tokens_at, read.const_data_ptr(), read.nbytes());
    std::memcpy(memory.start() + positions_at, places.const_data_ptr(),
                static_cast<size_t>(n) * sizeof(int64_t));
    const uint32_t seed = dropout == nullptr ? 0
                                             : SeedOf(dropout->seeds[0], dropout->purpose,
                                                      dropout->step, dropout->first_sequence);
    (void)child_->Call({{"do", "forward"},
                        {"member", member},
                        {"pass", pass},
                        {"seed", seed},
                        {"training", training},
                        {"numbers", is_numbers},
                        {"rows", rows},
                        {"tokens", n},
                        {"outputs", output_length},
                        {"at",
                         {{"tokens", tokens_at},
                          {"positions", positions_at},
                          {"logits", logits_at},
                          {"gradient", gradient_at},
                          {"bias", bias_at},
                          {"bias_gradient", bias_gradient_at}}},
                        {"heads", heads_},
                        {"bytes", memory.bytes()}});
    return at::from_blob(memory.start() + logits_at, shape, any.options().requires_grad(false));
  };
  if (!training) return compute();
  const bool is_wanted = bias.requires_grad();
  const auto backward = [this, member, pass, gradient_at, bytes, is_wanted, bias_gradient_at,
                         like = bias.detach()](const at::Tensor& gradient) -> at::Tensor {
    if (!std::isfinite(gradient.sum().item<double>())) WarnOfNumbers(member);
    std::memcpy(child_->inputs().start() + gradient_at, gradient.contiguous().const_data_ptr(),
                static_cast<size_t>(bytes));
    (void)child_->Call({{"do", "backward"}, {"pass", pass}, {"bias", is_wanted}});
    if (!is_wanted) return {};
    return at::from_blob(child_->inputs().start() + bias_gradient_at, like.sizes(), like.options())
        .clone();
  };
  return Computed::apply(at::zeros({1}).set_requires_grad(true), bias, compute, backward);
}

at::Tensor PythonLanguageModel::Forward(const ParameterSet& parameters,
                                        const ExampleGroups& examples, const at::Tensor& positions,
                                        const DropoutNumbers* dropout, Capture* /*capture*/) const {
  DropoutNumbers numbers = dropout == nullptr ? DropoutNumbers() : *dropout;
  std::vector<at::Tensor> logits;
  int64_t first = 0;
  for (const ExampleGroups::Group& group : examples.groups) {
    const int64_t count = group.examples * group.length;
    const NetworkInput input = {
        .tokens = examples.tokens.narrow(1, first, count).view({1, group.examples, group.length})};
    const auto pass = static_cast<int64_t>(logits.size());
    logits.push_back(network_
                         ->ForwardPass(parameters, input,
                                       positions.narrow(2, group.first_position, group.length),
                                       group.length, dropout == nullptr ? nullptr : &numbers, pass)
                         .flatten(1, 2));
    numbers.first_sequence += group.examples;
    first += count;
  }
  return at::cat(logits, 1);
}

std::unique_ptr<DecodingCache> PythonLanguageModel::StartDecoding(
    const ParameterSet& /*parameters*/, int64_t /*sequences*/, const at::Tensor& positions) const {
  auto seen = std::make_unique<SeenTokens>();
  seen->positions = positions;
  return seen;
}

at::Tensor PythonLanguageModel::Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                                       DecodingCache& cache) const {
  auto& seen = static_cast<SeenTokens&>(cache);
  seen.tokens = seen.tokens.defined() ? at::cat({seen.tokens, tokens}, 2) : tokens;
  return network_
      ->Forward(parameters, {.tokens = seen.tokens},
                seen.positions.narrow(2, 0, seen.tokens.size(2)), 1, nullptr, nullptr)
      .select(2, 0)
      .clone();
}

}  // namespace lengthwise::models
