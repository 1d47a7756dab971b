// Converts a run of the reference implementation (a file of randomized_positional_encodings/model
// or model_full) to inputs of this implementation. A model_full file has its parameters in the .f32
// file beside it. Shapes, encodings and positions come from the files.
#ifndef LENGTHWISE_TESTS_GOLDEN_REFERENCE_MODEL_H_
#define LENGTHWISE_TESTS_GOLDEN_REFERENCE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {

// This implementation's name of the reference's parameter, in a network with or without the
// relative encoding.
std::string SlotName(const std::string& reference_name, bool relative);

class ReferenceModel {
 public:
  // Reads Folder(folder)/name.json.
  ReferenceModel(const std::string& folder, const std::string& name);

  // False if there is no such file; unsupported() then says so, too.
  bool exists() const { return exists_; }

  // The reason why this build cannot run it ("no encoding rope"); empty if it can. Otherwise the
  // methods below must not be called.
  const std::string& unsupported() const { return unsupported_; }

  const nlohmann::json& file() const { return file_; }
  const models::Network& network() const { return *network_; }
  const models::ParameterLayout& layout() const { return layout_; }
  bool relative() const { return relative_; }
  // [1, B, n], including the empty tokens that request outputs.
  const at::Tensor& tokens() const { return tokens_; }
  // [1, S, n], S is 1 or the number of blocks
  const at::Tensor& positions() const { return positions_; }
  // [B * m]
  const at::Tensor& targets() const { return targets_; }
  int64_t output_length() const { return output_length_; }

  // An arena of one model with the file's parameters.
  std::unique_ptr<models::ParameterArena> Arena(at::ScalarType dtype) const;

  // The reference's loss for logits [1, B, m, O]: mean cross-entropy of all output tokens.
  at::Tensor Loss(const at::Tensor& logits) const;

  // Arranges values, given as arrays by the reference's parameter names, as a row of the arena, in
  // double precision.
  at::Tensor Row(const nlohmann::json& values_by_name) const;

 private:
  at::Tensor RowOfBinaryFile() const;
  // Takes values in the order of parameter_names_.
  at::Tensor Row(const std::vector<at::Tensor>& values) const;
  void ReadNetwork();
  void ReadSequences();
  std::string folder_;
  std::string name_;
  bool exists_ = false;
  std::string unsupported_;
  nlohmann::json file_;
  bool relative_ = false;
  std::vector<std::string> parameter_names_;
  models::ParameterLayout layout_;
  std::unique_ptr<models::Network> network_;
  at::Tensor tokens_;
  at::Tensor positions_;
  at::Tensor targets_;
  int64_t input_columns_ = 0;
  int64_t output_length_ = 0;
};

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_REFERENCE_MODEL_H_
