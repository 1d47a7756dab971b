#include "tests/golden/encoding_subject.h"

#include <fstream>
#include <vector>

#include "ATen/ops/zeros.h"
#include "models/encodings/catalogue.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::golden {

using nlohmann::json;

json ReadGolden(const std::string& name) {
  std::ifstream file(Folder("encodings_and_networks") + "/" + name);
  return file ? json::parse(file) : json();
}

EncodingSubject::EncodingSubject(const std::string& name, const Values& values,
                                 const models::EncodingShape& shape, at::ScalarType dtype) {
  catalogue::Parameters given;
  for (const auto& [key, value] : values) given.Set(key, value);
  for (const models::EncodingEntry* entry : models::EncodingEntries()) {
    if (entry->name != name) continue;
    std::vector<catalogue::Problem> problems;
    encoding =
        models::CreateEncoding(name, catalogue::Resolve(*entry, given, "", problems), shape, layout)
            .value();
  }
  // A parameter that tells the type where the encoding has none.
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
  // It depends on neither queries nor keys.
  const at::Tensor none = at::zeros({1, 1, 1, positions.size(0), 1}, arena->parameters().options());
  return encoding
      ->LogitTerm(arena->Members(0, 1), 0, positions.to(at::kLong).unsqueeze(0), none, none)
      .squeeze(0)
      .squeeze(0)
      .detach()
      .to(at::kDouble);
}

}  // namespace lengthwise::golden
