// `lengthwise encodings --draw SPEC`: draws the formula encodings of a specification.
#ifndef LENGTHWISE_CLIENT_COMMANDS_DRAW_FORMULA_H_
#define LENGTHWISE_CLIENT_COMMANDS_DRAW_FORMULA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/commands/program.h"

namespace lengthwise::client {

struct FormulaDrawing {
  std::string specification;  // as ReadSpecification takes it
  // .svg, .png or .pdf file to write. Empty: draw in the terminal.
  std::string out;
  int64_t head = 1;    // from 1, of the terminal's picture
  int64_t tokens = 0;  // 0: those of the longest training input
};

// Draws every encoding `formula` with its parameters' initial values, at the positions 0, 1, 2, ...
// and with the sizes of the first network. INVALID_ARGUMENT if the specification is invalid, has no
// formula or has fewer heads than `head`.
absl::StatusOr<int> DrawFormulas(Program& program, const FormulaDrawing& drawing);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_DRAW_FORMULA_H_
