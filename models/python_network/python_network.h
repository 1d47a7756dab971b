// The network of a user's PyTorch module, which a process of its own computes (process.h).
#ifndef LENGTHWISE_MODELS_PYTHON_NETWORK_PYTHON_NETWORK_H_
#define LENGTHWISE_MODELS_PYTHON_NETWORK_PYTHON_NETWORK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/time/time.h"
#include "catalogue/entry.h"
#include "models/encodings/encoding.h"
#include "models/networks/language_model.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "models/python_network/process.h"

namespace lengthwise::models {

// Parameters and the buffers of the module's `state_dict` are slots of the layout; buffers are not
// trained. The arena is in the host's memory. Forward serves one member at a time. A backward pass
// adds to the arena's gradients directly. The module is a function of the state, the inputs and a
// seed that follows from DropoutNumbers. Throws NetworkError. Not thread-safe.
class PythonNetwork : public Network {
 public:
  struct Options {
    std::string interpreter;
    // As PyTorch names it. On "cpu" the module's tensors are views of the arena; every other
    // device, also "cpu:0", has copies.
    std::string device = "cpu";
    // Of each call (PythonProcess::Start).
    absl::Duration limit = absl::Minutes(10);
    // The archive of the module's files (specification/network_files.h).
    std::string archive;
    // "float32" or "float64".
    std::string precision;
    // Of each member.
    std::vector<uint64_t> weight_seeds;
    // Receives warnings for people.
    std::function<void(const std::string&)> warn = [](const std::string&) {};
  };

  // Makes the module of every member and adds its slots, and then the encoding's, to `layout`.
  // `parameters` are those of the catalogue's network `python`. Throws a NetworkError that is
  // permanent if the module is wrong, and another if this machine cannot run any.
  PythonNetwork(const Options& options, const catalogue::Parameters& parameters,
                absl::string_view encoding, const catalogue::Parameters& encoding_parameters,
                const NetworkShape& shape, ParameterLayout& layout);

  // Allocates the parameters and the gradients of the arena in memory that the process shares.
  ParameterArena::Allocate Allocator();
  // Fills the arena with the modules' initial values. `arena` has memory of Allocator.
  void Bind(ParameterArena& arena);

  // What computes, for the provenance: "torch 1.13.0a0, Python 3.11.2", and the name of a GPU.
  const std::string& versions() const { return versions_; }
  // True if the module gives attention maps, and if it continues texts from a cache of its own.
  bool gives_attention() const { return gives_attention_; }
  bool takes_cache() const { return takes_cache_; }

  at::Tensor Forward(const ParameterSet& parameters, const NetworkInput& input,
                     const at::Tensor& positions, int64_t output_length,
                     const DropoutNumbers* dropout, Capture* capture) const override {
    return Run(parameters, input, positions, output_length, dropout, {.capture = capture});
  }
  struct Pass {
    // Keeps attention if the module gives it. May be null.
    Capture* capture = nullptr;
    // One of several passes of a step, from 0. Its inputs stay where they are until the next pass
    // 0, for its backward pass.
    int64_t number = 0;
    // Tokens before those of the input that the module's cache has; `positions` has them, too. 0
    // starts a new cache, -1 uses none.
    int64_t cached = -1;
  };
  at::Tensor Run(const ParameterSet& parameters, const NetworkInput& input,
                 const at::Tensor& positions, int64_t output_length, const DropoutNumbers* dropout,
                 const Pass& pass) const;

 private:
  // Says what is not finite, once.
  void WarnOfNumbers(int64_t member) const;
  // Adds the maps of the last forward pass. Warns if the module fails to give them.
  void KeepAttention(int64_t member, const at::TensorOptions& options, Capture& capture) const;

  const std::shared_ptr<PythonProcess> child_;
  const std::function<void(const std::string&)> warn_;
  const int64_t outputs_;
  const int64_t heads_;
  // True: modules get positions as float64, otherwise as int64.
  const bool real_positions_;
  std::string versions_;
  bool gives_attention_ = false;
  bool takes_cache_ = false;
  // Gives the bias of the module's attention; null for `own`.
  std::unique_ptr<Encoding> encoding_;
  // Of the arena.
  const ParameterLayout* layout_ = nullptr;
  at::Tensor rows_;
  mutable bool warned_ = false;
  // Bytes of the inputs that the passes since pass 0 use.
  mutable int64_t used_ = 0;
};

// The module reads a whole text and returns logits of the token after each. It must be causal.
// Every token of an answer takes a call with all tokens before it, unless the module takes a cache.
class PythonLanguageModel : public LanguageModel {
 public:
  explicit PythonLanguageModel(std::unique_ptr<PythonNetwork> network)
      : network_(std::move(network)) {}

  at::Tensor Forward(const ParameterSet& parameters, const ExampleGroups& examples,
                     const at::Tensor& positions, const DropoutNumbers* dropout,
                     Capture* capture) const override;
  std::unique_ptr<DecodingCache> StartDecoding(const at::Tensor& positions) const override;
  at::Tensor Decode(const ParameterSet& parameters, const at::Tensor& tokens,
                    DecodingCache& cache) const override;

 private:
  const std::unique_ptr<PythonNetwork> network_;
  // What the module's cache continues.
  mutable const DecodingCache* cached_ = nullptr;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_PYTHON_NETWORK_PYTHON_NETWORK_H_
