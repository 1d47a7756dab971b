#include "models/encodings/catalogue.h"

#include "models/encodings/alibi.h"
#include "models/encodings/fire.h"
#include "models/encodings/kerple_log.h"
#include "models/encodings/learned.h"
#include "models/encodings/none.h"
#include "models/encodings/relative.h"
#include "models/encodings/rope.h"
#include "models/encodings/shaw.h"
#include "models/encodings/sin_cos.h"
#include "models/encodings/sin_cos_2d.h"
#include "models/encodings/t5.h"

namespace lengthwise::models {

absl::Span<const EncodingEntry* const> EncodingEntries() {
  static const auto& entries = *new std::vector<const EncodingEntry*>{
      &NoneEntry(),  &SinCosEntry(),    &LearnedEntry(), &RelativeEntry(),
      &AlibiEntry(), &RopeEntry(),      &ShawEntry(),    &SinCos2dEntry(),
      &FireEntry(),  &KerpleLogEntry(), &T5Entry(),
  };
  return entries;
}

}  // namespace lengthwise::models
