// The parameters of a formula, as a user writes them.
#ifndef LENGTHWISE_SPECIFICATION_FORMULA_PARAMETERS_H_
#define LENGTHWISE_SPECIFICATION_FORMULA_PARAMETERS_H_

#include <string>

#include "proto/specification.pb.h"
#include "specification/findings.h"

namespace lengthwise::specification {

// Moves every value of an encoding `formula` that is a number, a list or a map, and no parameter of
// the catalogue's entry, into the entry's parameter "parameters", in the form of
// models/encodings/formula_definition.h. `path` is the encoding's. Leaves other components alone.
void FoldFormulaParameters(const std::string& path, v1::Component& encoding, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_FORMULA_PARAMETERS_H_
