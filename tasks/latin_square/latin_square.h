// The Latin square task: determine which of four symbols belongs in the target cell.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_LATIN_SQUARE_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_LATIN_SQUARE_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::latin_square {

// The task has the kind TaskKind::kPuzzle.
const TaskEntry& LatinSquare();

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_LATIN_SQUARE_H_
