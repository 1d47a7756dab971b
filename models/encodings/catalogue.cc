#include "models/encodings/catalogue.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/encodings/alibi.h"
#include "models/encodings/binary.h"
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

absl::Span<const EncodingEntry* const> EncodingEntries() {
  static const auto& entries = *new std::vector<const EncodingEntry*>{
      &NoneEntry(), &SinCosEntry(), &LearnedEntry(),  &RelativeEntry(), &AlibiEntry(),
      &RopeEntry(), &ShawEntry(),   &SinCos2dEntry(), &FireEntry(),     &KerpleLogEntry(),
      &T5Entry(),   &OneHotEntry(), &BinaryEntry(),   &FormulaEntry(),
  };
  return entries;
}

void CheckEncoding(const EncodingEntry& entry, const catalogue::Parameters& parameters,
                   const EncodingContext& context, absl::string_view path,
                   std::vector<catalogue::Problem>& problems) {
  if (!(context.as_vectors ? entry.gives_vectors : entry.is_added)) {
    std::vector<std::string> others;
    for (const EncodingEntry* other : EncodingEntries()) {
      if (context.as_vectors ? other->gives_vectors : other->is_added)
        others.push_back(other->name);
    }
    problems.push_back(
        {.field = std::string(path),
         .description = absl::StrCat(
             "\"", entry.name, "\" ",
             context.as_vectors
                 ? "gives no vectors for positions, which the network attends by or reads beside "
                   "its input"
                 : "only gives vectors for positions, which the network has no use for",
             "; use one of ", absl::StrJoin(others, ", "))});
    return;
  }
  if (entry.check != nullptr) entry.check(parameters, context, path, problems);
}

}  // namespace lengthwise::models
