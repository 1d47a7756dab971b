// The list of all tasks: folder and namespace, then the function that returns the catalogue entry,
// which the folder's .cc file defines. A line without such a function does not link.
#ifndef LENGTHWISE_TASKS_ALL_TASKS_H_
#define LENGTHWISE_TASKS_ALL_TASKS_H_

#include "tasks/entry.h"

// clang-format off
#define LENGTHWISE_TASKS(TASK)                  \
  TASK(chomsky, BinaryAddition)                 \
  TASK(chomsky, BinaryMultiplication)           \
  TASK(chomsky, BucketSort)                     \
  TASK(chomsky, ComputeSqrt)                    \
  TASK(chomsky, CopyString)                     \
  TASK(chomsky, CycleNavigation)                \
  TASK(chomsky, DuplicateString)                \
  TASK(chomsky, EvenPairs)                      \
  TASK(chomsky, MissingDuplicateString)         \
  TASK(chomsky, ModularArithmetic)              \
  TASK(chomsky, ModularArithmeticBrackets)      \
  TASK(chomsky, OddsFirst)                      \
  TASK(chomsky, ParityCheck)                    \
  TASK(chomsky, ReverseString)                  \
  TASK(chomsky, SolveEquation)                  \
  TASK(chomsky, StackManipulation)              \
  TASK(latin_square, LatinSquare)               \
  TASK(memory, AssociativeRecall)               \
  TASK(memory, Counting)                        \
  TASK(memory, DigitSum)                        \
  TASK(memory, FlipFlop)                        \
  TASK(memory, SelectiveCopy)                   \
  TASK(memory, WordProblem)                     \
  TASK(numeric, CumulativeMaxSumSubarray)       \
  TASK(numeric, CumulativeMedian)               \
  TASK(numeric, CumulativeMin)                  \
  TASK(numeric, CumulativeSum)                  \
  TASK(numeric, RelationalQuery)                \
  TASK(numeric, Sorting)                        \
  TASK(addition, DecimalAddition)
// clang-format on

namespace lengthwise::tasks {

#define LENGTHWISE_DECLARE(family, name) \
  namespace family {                     \
  TaskEntry name();                      \
  }
LENGTHWISE_TASKS(LENGTHWISE_DECLARE)
#undef LENGTHWISE_DECLARE

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_ALL_TASKS_H_
