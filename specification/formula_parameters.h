// Reads the named parameters of a user's formula encoding.
#ifndef LENGTHWISE_SPECIFICATION_FORMULA_PARAMETERS_H_
#define LENGTHWISE_SPECIFICATION_FORMULA_PARAMETERS_H_

#include <string>

#include "proto/specification.pb.h"
#include "specification/findings.h"

namespace lengthwise::specification {

// Applies to the encoding `formula`; other components stay unchanged. Moves each value that is a
// number, a list or a map, and is not a catalogue parameter, into the entry's parameter
// "parameters", in the format of models/encodings/formula_definition.h. `path` is the encoding's
// field.
void FoldFormulaParameters(const std::string& path, v1::Component& encoding, Findings& findings);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_FORMULA_PARAMETERS_H_
