#include "models/networks/parameterized_layers.h"

#include <cmath>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/diag_embed.h"
#include "ATen/ops/where.h"
#include "models/layers/layers.h"

namespace lengthwise::models {

Initializer Xavier(int64_t fan_in, int64_t fan_out) {
  return {.kind = Initializer::Kind::kUniform,
          .value = std::sqrt(6 / static_cast<double>(fan_in + fan_out))};
}

ParameterId AddWeight(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                      int64_t fan_out) {
  return layout.Add(name, {fan_in, fan_out}, HaikuLinear(fan_in));
}

int64_t FeedForwardFeatures(const catalogue::Parameters& parameters, int64_t d_model) {
  const int64_t d_ff = parameters.Int("d_ff");
  return d_ff == 0 ? 4 * d_model : d_ff;
}

at::Tensor LinearLayer::operator()(const ParameterSet& parameters,
                                   const at::Tensor& features) const {
  return bias.has_value() ? Linear(features, parameters[weight], parameters[*bias])
                          : Linear(features, parameters[weight]);
}

LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out) {
  const ParameterId weight = layout.Add(name, {fan_in, fan_out}, TorchLinear(fan_in));
  return {weight, layout.Add(name + "_bias", {fan_out}, TorchLinear(fan_in))};
}

LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out, const Initializer& weight) {
  const ParameterId id = layout.Add(name, {fan_in, fan_out}, weight);
  return {id, layout.Add(name + "_bias", {fan_out}, {.kind = Initializer::Kind::kZeros})};
}

LinearLayer AddHaikuLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                          int64_t fan_out) {
  return AddLinearLayer(layout, name, fan_in, fan_out, HaikuLinear(fan_in));
}

NumberEmbedding::NumberEmbedding(const NetworkShape& shape, int64_t vector_size, int64_t d_model,
                                 ParameterLayout& layout, bool diagonal)
    : reads_vectors_(vector_size > 0), diagonal_size_(diagonal ? shape.longest_sequence : 0) {
  const int64_t number_size = diagonal ? diagonal_size_ : 1;
  linear_ = AddLinearLayer(layout, "embedding", number_size + vector_size, d_model);
  if (shape.input_columns == 0) return;
  tokens_ = layout.Add("token_embedding", {shape.input_columns, d_model},
                       {.kind = Initializer::Kind::kNormal, .stddev = 1});
}

at::Tensor NumberEmbedding::operator()(const ParameterSet& parameters, const NetworkInput& input,
                                       const at::Tensor& vectors) const {
  const at::Tensor& numbers = input.numbers;
  std::vector<at::Tensor> features = {numbers.unsqueeze(3)};
  if (diagonal_size_ > 0) {
    features = {at::diag_embed(numbers)};
    const int64_t absent = diagonal_size_ - numbers.size(2);
    features.push_back(
        numbers.new_zeros({numbers.size(0), numbers.size(1), numbers.size(2), absent}));
  }
  if (reads_vectors_) {
    features.push_back(vectors.unsqueeze(1).expand({-1, numbers.size(1), -1, -1}));
  }
  const at::Tensor read = linear_(parameters, at::cat(features, 3));
  if (!tokens_.has_value()) return read;
  const at::Tensor is_number = input.tokens.lt(0);
  const at::Tensor rows = Embed(input.tokens.masked_fill(is_number, 0), parameters[*tokens_]);
  return at::where(is_number.unsqueeze(3), read, rows);
}

}  // namespace lengthwise::models
