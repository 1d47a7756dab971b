#include "tests/golden/encoding_subject.h"

#include "ATen/ops/zeros.h"
#include "models/encodings/catalogue.h"

namespace lengthwise::golden {

EncodingSubject::EncodingSubject(const std::string& name, const Given& values,
                                 const models::EncodingShape& shape, at::ScalarType dtype) {
  encoding =
      models::CreateEncoding(name, Resolve(models::EncodingEntries(), name, values), shape, layout)
          .value();
  // A placeholder parameter that carries the type, for encodings without parameters.
  if (layout.slots().empty()) layout.Add("any", {1}, {});
  arena = std::make_unique<models::ParameterArena>(layout, 1, dtype, at::kCPU);
}

void EncodingSubject::Set(const std::string& parameter, const at::Tensor& values) {
  for (const auto& slot : layout.slots()) {
    if (slot.name != parameter) continue;
    arena->parameters().select(0, 0).narrow(0, slot.offset, slot.size).copy_(values.flatten());
  }
}

at::Tensor EncodingSubject::Bias(const at::Tensor& positions) const {
  // These terms depend on neither queries nor keys.
  const at::Tensor none = at::zeros({1, 1, 1, positions.size(0), 1}, arena->parameters().options());
  return encoding
      ->LogitTerm(arena->Members(0, 1), 0, positions.to(at::kLong).unsqueeze(0), none, none)
      .squeeze(0)
      .squeeze(0)
      .detach()
      .to(at::kDouble);
}

}  // namespace lengthwise::golden
