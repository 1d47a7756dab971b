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
       .documentation = "The file of training examples, JSON lines, beside the specification. "
                        "Required."},
      {.name = "test",
       .default_value = std::string(),
       .documentation = "The file of test examples. Empty: a part of `train` is held out."},
      {.name = "held_out_above",
       .default_value = int64_t{0},
       .documentation =
           "Without `test`: examples longer than this are tested and never trained on. 0: none.",
       .minimum = 0,
       .maximum = 100'000},
      {.name = "held_out",
       .default_value = 0.1,
       .documentation = "Without `test`: fraction of the other examples that is tested and never "
                        "trained on. Equal inputs go together.",
       .minimum = 0,
       .maximum = 0.9},
      {.name = "symbols",
       .default_value = std::string("characters"),
       .documentation = "What a symbol of text is: \"characters\", or \"words\" between spaces.",
       .allowed = {"characters", "words"}},
      {.name = "target_length",
       .default_value = std::string("auto"),
       .documentation = "\"auto\": where most targets are as long as their inputs, all must be. "
                        "\"any\": they need not.",
       .allowed = {"auto", "any"}},
      {.name = "train_sha256",
       .default_value = std::string(),
       .documentation =
           "SHA-256 of the file `train`. Filled in by `lengthwise`; where it is given, "
           "the file must have it."},
      {.name = "test_sha256",
       .default_value = std::string(),
       .documentation = "SHA-256 of the file `test`, as train_sha256."},
      {.name = "contents",
       .default_value = std::string(),
       .documentation = "What the files hold, as JSON. Filled in by `lengthwise`; leave it out."},
  };
}

}  // namespace

const TaskEntry& Examples() {
  static const auto& entry = *new TaskEntry{
      {.name = "examples",
       .title = "Examples (file)",
       .documentation =
           "Your own examples, from a file with a line such as {\"input\": [3, 1, 2], \"target\": "
           "[1, 2, 3]} for each: integers, or text (docs/your_own_data.md). The length is the "
           "input's, or the line's \"length\".",
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
             "What `examples` becomes where the file has real numbers: "
             "{\"input\": [0.5, 1.25], \"target\": [1.75]}. Named itself, it takes integers for "
             "numbers.",
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
         .documentation = "What `examples` becomes for causal_decoder, which reads the input and "
                          "continues it with the target: {\"input\": \"12+7=\", \"target\": "
                          "\"19\"}. Targets have any length.",
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
