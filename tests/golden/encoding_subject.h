// An encoding of one block with its parameters, for comparison with a golden file.
#ifndef LENGTHWISE_TESTS_GOLDEN_ENCODING_SUBJECT_H_
#define LENGTHWISE_TESTS_GOLDEN_ENCODING_SUBJECT_H_

#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {

struct EncodingSubject {
  EncodingSubject(const std::string& name, const Given& values, const models::EncodingShape& shape,
                  at::ScalarType dtype = at::kDouble);

  // Sets the parameter of this name to the values, row-major.
  void Set(const std::string& parameter, const at::Tensor& values);

  // The term that the encoding adds to the logits of its only head, or of all heads: [H, n, n], in
  // double precision.
  at::Tensor Bias(const at::Tensor& positions) const;

  models::ParameterLayout layout;
  std::unique_ptr<models::Encoding> encoding;
  std::unique_ptr<models::ParameterArena> arena;
};

}  // namespace lengthwise::golden

#endif  // LENGTHWISE_TESTS_GOLDEN_ENCODING_SUBJECT_H_
