// Decorators of networks and language models for training.precision: bfloat16.
#include <utility>

#include "ATen/Context.h"
#include "models/layers/layers.h"
#include "models/networks/language_model.h"
#include "models/networks/network.h"

namespace lengthwise::models {
namespace {

class Bfloat16Network : public Network {
 public:
  explicit Bfloat16Network(std::unique_ptr<Network> inner) : inner_(std::move(inner)) {}

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    const Bfloat16Products products;
    return Widened(inner_->Forward(parameters, input, positions, output_length, dropout, capture));
  }

  bool HoldsLogits(const at::Tensor& sample) const override { return inner_->HoldsLogits(sample); }

  bool DrawsInTraining() const override { return inner_->DrawsInTraining(); }

 private:
  std::unique_ptr<Network> inner_;
};

class Bfloat16LanguageModel : public LanguageModel {
 public:
  explicit Bfloat16LanguageModel(std::unique_ptr<LanguageModel> inner) : inner_(std::move(inner)) {}

  at::Tensor Forward(const ParameterSet& parameters, const ExampleGroups& examples,
                     const at::Tensor& positions, const DropoutNumbers* dropout,
                     Capture* capture) const override {
    const Bfloat16Products products;
    return Widened(inner_->Forward(parameters, examples, positions, dropout, capture));
  }

  std::unique_ptr<DecodingCache> StartDecoding(const at::Tensor& positions) const override {
    return inner_->StartDecoding(positions);
  }

  at::Tensor Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                    DecodingCache& cache) const override {
    const Bfloat16Products products;
    return Widened(inner_->Decode(parameters, tokens, cache));
  }

 private:
  std::unique_ptr<LanguageModel> inner_;
};

// By default cuBLAS may use bfloat16 to add the partial sums of a split product.
void SumInFloat32() { at::globalContext().setAllowBF16ReductionCuBLAS(false); }

}  // namespace

std::unique_ptr<Network> WithBfloat16Products(std::unique_ptr<Network> inner) {
  SumInFloat32();
  return std::make_unique<Bfloat16Network>(std::move(inner));
}

std::unique_ptr<LanguageModel> WithBfloat16Products(std::unique_ptr<LanguageModel> inner) {
  SumInFloat32();
  return std::make_unique<Bfloat16LanguageModel>(std::move(inner));
}

}  // namespace lengthwise::models
