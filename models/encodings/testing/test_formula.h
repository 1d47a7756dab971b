// A formula for every place, for tests that go through all encodings.
#ifndef LENGTHWISE_MODELS_ENCODINGS_TESTING_TEST_FORMULA_H_
#define LENGTHWISE_MODELS_ENCODINGS_TESTING_TEST_FORMULA_H_

#include <string>

#include "catalogue/entry.h"

namespace lengthwise::models {

// Sets parameters without a usable default; only `formula` has such.
inline void GiveFormula(const std::string& encoding, catalogue::Parameters& given) {
  if (encoding != "formula") return;
  given.Set("logits", std::string("where(q == k, 0, -softplus(a) * log(softplus(b) * abs(q - k))) "
                                  "+ t[min(abs(q - k), 7)] - f * (h + 1) / H"));
  given.Set("embedding",
            std::string("s * where(c < d / 2, sin(p * 10000^(-2 * c / d)), cos(p / 7))"));
  given.Set("angle", std::string("g * p * 100^(-2 * i / d)"));
  given.Set("scale", std::string("1 + r * sin(q) / (h + 2)"));
  given.Set("magnitude", std::string("((2 * i + 0.4 * d) / (1.4 * d))^(m * p / 4096)"));
  given.Set(
      "parameters",
      std::string("a per head = 1; b per layer = 0.1; f fixed per head = 0.5; "
                  "g per layer = 1; s = 0.5; t[8] per head ~ 0.1; r per head = 0.2; m = 0.5"));
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_TESTING_TEST_FORMULA_H_
