#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "models/encodings/alibi.h"
#include "models/encodings/binary.h"
#include "models/encodings/encoding.h"
#include "models/encodings/fire.h"
#include "models/encodings/formula.h"
#include "models/encodings/kerple_log.h"
#include "models/encodings/learned.h"
#include "models/encodings/none.h"
#include "models/encodings/one_hot.h"
#include "models/encodings/relative.h"
#include "models/encodings/rope.h"
#include "models/encodings/shaw.h"
#include "models/encodings/sin_cos.h"
#include "models/encodings/sin_cos_2d.h"
#include "models/encodings/t5.h"

namespace lengthwise::models {
namespace {

struct Implementation {
  const EncodingEntry& entry;
  std::unique_ptr<Encoding> (*create)(const catalogue::Parameters& parameters,
                                      const EncodingShape& shape, ParameterLayout& layout);
};

const std::vector<Implementation>& Implementations() {
  static const auto& implementations = *new std::vector<Implementation>{
      {NoneEntry(), CreateNone},       {SinCosEntry(), CreateSinCos},
      {LearnedEntry(), CreateLearned}, {RelativeEntry(), CreateRelative},
      {AlibiEntry(), CreateAlibi},     {RopeEntry(), CreateRope},
      {ShawEntry(), CreateShaw},       {SinCos2dEntry(), CreateSinCos2d},
      {OneHotEntry(), CreateOneHot},   {BinaryEntry(), CreateBinary},
      {FireEntry(), CreateFire},       {KerpleLogEntry(), CreateKerpleLog},
      {T5Entry(), CreateT5},           {FormulaEntry(), CreateFormula},
  };
  return implementations;
}

}  // namespace

std::vector<std::string> ImplementedEncodings() {
  std::vector<std::string> names;
  for (const Implementation& implementation : Implementations()) {
    names.push_back(implementation.entry.name);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Encoding>> CreateEncoding(absl::string_view name,
                                                         const catalogue::Parameters& parameters,
                                                         const EncodingShape& shape,
                                                         ParameterLayout& layout) {
  for (const Implementation& implementation : Implementations()) {
    if (implementation.entry.name == name) {
      return implementation.create(parameters, shape, layout);
    }
  }
  return absl::NotFoundError(absl::StrCat("unknown encoding \"", std::string(name), "\"",
                                          catalogue::Suggestion(name, ImplementedEncodings())));
}

}  // namespace lengthwise::models
