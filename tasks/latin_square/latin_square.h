// The Latin square task: which of four symbols belongs in the cell asked for.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_LATIN_SQUARE_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_LATIN_SQUARE_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::latin_square {

// Of kind TaskKind::kPuzzle.
const TaskEntry& LatinSquare();

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_LATIN_SQUARE_H_
