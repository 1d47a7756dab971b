// `lengthwise encodings --draw SPEC`: what the formulas of a specification look like.
#ifndef LENGTHWISE_CLIENT_COMMANDS_DRAW_FORMULA_H_
#define LENGTHWISE_CLIENT_COMMANDS_DRAW_FORMULA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/commands/program.h"

namespace lengthwise::client {

struct FormulaDrawing {
  std::string specification;  // as ReadSpecification takes it
  // An SVG file instead of the terminal; empty for none.
  std::string out;
  int64_t head = 1;    // from 1, of the terminal's picture
  int64_t tokens = 0;  // 0: training.lengths.max
};

// Draws every encoding `formula` with its parameters' initial values, at the positions 0, 1, 2, ...
// and in the sizes of the first network. INVALID_ARGUMENT where the specification is not valid, has
// no formula or not so many heads.
absl::StatusOr<int> DrawFormulas(Program& program, const FormulaDrawing& drawing);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_DRAW_FORMULA_H_
