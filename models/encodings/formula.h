// An encoding that a specification writes as formulas (formula_expression.h): additions to the
// logits of each head, to the embeddings, or angles by which queries and keys are turned.
#ifndef LENGTHWISE_MODELS_ENCODINGS_FORMULA_H_
#define LENGTHWISE_MODELS_ENCODINGS_FORMULA_H_

#include <memory>
#include <string>

#include "models/encodings/catalogue.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class Encoding;
struct EncodingShape;

const EncodingEntry& FormulaEntry();

// The language on one page, as `lengthwise encodings formula` prints it.
std::string FormulaPage();

// A learned parameter `a` is "encoding.a" in the layout, for all layers together; fixed ones are
// not in it. Formulas with mistakes, which the entry's check refuses, are left out.
std::unique_ptr<Encoding> CreateFormula(const catalogue::Parameters& parameters,
                                        const EncodingShape& shape, ParameterLayout& layout);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_FORMULA_H_
