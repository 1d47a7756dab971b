#include "tasks/examples/entries.h"

#include <utility>
#include <vector>

#include "catalogue/entry.h"

namespace lengthwise::tasks::examples {
namespace {

std::vector<catalogue::ParameterEntry> FileParameters() {
  return {
      {.name = "train",
       .default_value = std::string(),
       .documentation =
           "File of training examples in JSON lines, relative to the specification. Required."},
      {.name = "test",
       .default_value = std::string(),
       .documentation = "File of test examples. Empty: holds out a part of `train`."},
      {.name = "held_out_above",
       .default_value = int64_t{0},
       .documentation = "Without `test`: holds out examples longer than this for testing. 0: none.",
       .minimum = 0,
       .maximum = 100'000},
      {.name = "held_out",
       .default_value = 0.1,
       .documentation = "Without `test`: fraction of the other examples held out for testing, of "
                        "every length. Equal inputs stay together.",
       .minimum = 0,
       .maximum = 0.9},
      {.name = "symbols",
       .default_value = std::string("characters"),
       .documentation = "Symbols of text: \"characters\", or \"words\" between spaces.",
       .allowed = {"characters", "words"}},
      {.name = "target_length",
       .default_value = std::string("auto"),
       .documentation = "\"auto\": if most targets are as long as their inputs, all must be. "
                        "\"any\": targets have any length.",
       .allowed = {"auto", "any"}},
      {.name = "train_sha256",
       .default_value = std::string(),
       .documentation = "SHA-256 of the file `train`. `lengthwise` fills it in. If you set it, the "
                        "file must match."},
      {.name = "test_sha256",
       .default_value = std::string(),
       .documentation = "SHA-256 of the file `test`; see train_sha256."},
      {.name = "contents",
       .default_value = std::string(),
       .documentation =
           "Summary of the files' contents, as JSON. `lengthwise` fills it in; do not set it."},
  };
}

}  // namespace

const TaskEntry& Examples() {
  static const auto& entry = *new TaskEntry{
      {.name = "examples",
       .title = "Examples (file)",
       .documentation =
           "Your own examples, from a file with one line each, such as {\"input\": [3, 1, 2], "
           "\"target\": [1, 2, 3]}: integers, or text (docs/your_own_data.md). The length is the "
           "input's, unless the line has a \"length\".",
       .parameters = FileParameters()},
      TaskKind::kTransduction};
  return entry;
}

const TaskEntry& ExamplesNumbers() {
  static const auto& entry = *[] {
    auto* made = new TaskEntry{
        {.name = "examples_numbers",
         .title = "Examples (numbers)",
         .documentation =
             "Your own examples with real numbers: {\"input\": [0.5, 1.25], \"target\": [1.75]}. "
             "`examples` selects it for such files. Set it yourself to treat integers as numbers.",
         .parameters = FileParameters()},
        TaskKind::kRegression};
    made->compared_by_loss = true;
    made->loss_title = "mean squared error";
    return made;
  }();
  return entry;
}

const TaskEntry& ExamplesText() {
  static const auto& entry = *[] {
    auto* made = new TaskEntry{
        {.name = "examples_text",
         .title = "Examples (text)",
         .documentation =
             "Your own examples for causal_decoder, which reads the input and continues it with "
             "the target: {\"input\": \"12+7=\", \"target\": \"19\"}. `examples` selects it for "
             "that network. Targets have any length.",
         .parameters = FileParameters()},
        TaskKind::kText};
    made->accuracy_title = "exact match";
    return made;
  }();
  return entry;
}

bool IsExamples(absl::string_view name) {
  return name == Examples().name || name == ExamplesNumbers().name || name == ExamplesText().name;
}

}  // namespace lengthwise::tasks::examples
