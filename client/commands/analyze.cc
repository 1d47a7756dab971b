// `lengthwise analyze ANALYSIS EXPERIMENT...`: analyzes stored maps, models and scores.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"

namespace lengthwise::client {
namespace {

void AddReference(Command command, const std::string& help, const char* type = "ENCODING") {
  command.AddOption(absl::StrCat("--reference ", type), help).Required();
}

void AddLength(Command command,
               const std::string& help = "Number of digits; default: the largest") {
  command.AddOption<int32_t>("--length N", help).Positive();
}

void AddMeasure(Command command) {
  command
      .AddOption("--measure NAME",
                 "cosine of all probabilities, or js: Jensen-Shannon divergence; default cosine")
      .OneOf({"cosine", "js"});
}

}  // namespace

void AddAnalyze(Command root, Program& program) {
  const Command analyze =
      root.AddCommand("analyze", "Analyzes stored attention maps, models and per-sequence scores");
  analyze.Group(kServerGroup).RequireCommand();
  analyze.Footer(
      "Examples:\n"
      "  lengthwise analyze attention table3-1 --reference 2d_fixed\n"
      "  lengthwise analyze attention_matrix table3-1\n"
      "  lengthwise analyze ground_truth table3-1\n"
      "  lengthwise analyze encodings table2-1 --reference sin_cos_2d\n"
      "  lengthwise analyze noise table3-1\n"
      "  lengthwise analyze humans table3-1 --file people.json\n"
      "  lengthwise analyze carries figure4-1\n"
      "  lengthwise analyze carry_chains figure4-1\n"
      "  lengthwise analyze speed figure2_long figure2_randomized\n"
      "  lengthwise analyze loss_ratios figure2-1 --reference standard\n"
      "  lengthwise analyze t_test table1-1 --reference 2d_fixed\n"
      "Several experiments are analyzed as one: trials that differ only in their seeds make a "
      "row.\n"
      "Trials with the same labels that were trained differently have rows of their own, which "
      "name the experiment.");

  const auto add = [&](const std::string& name, const std::string& description,
                       const std::string& examples,
                       const std::function<void(Command)>& add_options = nullptr) {
    const Command command =
        program.AddCommand(analyze, name, description, kNestedGroup, examples, [&program, name] {
          return program.RunPython(program.Given({"analyze", name}));
        });
    command.AddOption<std::vector<std::string>>(
        "experiments", "Experiments, or single trials as EXPERIMENT/TRIAL");
    program.AddSelectOption(command);
    if (add_options != nullptr) add_options(command);
    program.AddServerOrDataDirOptions(command);
    program.AddOutputOption(command, {"table", "json", "csv", "markdown", "latex"});
  };
  add("attention", "Similarity of attention maps to those of one encoding",
      "lengthwise analyze attention table3-1 --reference 2d_fixed\n"
      "lengthwise analyze attention table3-1 --reference 2d_fixed --compare lst_pe_init/table_3\n"
      "lengthwise analyze attention table3-1 --reference 2d_fixed --measure js",
      [](Command command) {
        AddReference(command, "Encoding to compare the other maps with");
        AddMeasure(command);
        command.AddOption("--compare KEY",
                          "Published table to compare with, such as lst_pe_init/table_3");
      });
  add("attention_matrix", "Similarity of attention maps for every pair of encodings",
      "lengthwise analyze attention_matrix table3-1\n"
      "lengthwise analyze attention_matrix table3-1 --output csv > similarities.csv",
      AddMeasure);
  add("ground_truth", "Share of attention on the cells that puzzle answers depend on",
      "lengthwise analyze ground_truth table3-1\n"
      "lengthwise analyze ground_truth table3-1 --output csv > shares.csv");
  add("encodings", "Distance of learned position tables from a fixed encoding",
      "lengthwise analyze encodings table2-1 --reference sin_cos_2d", [](Command command) {
        AddReference(command,
                     "Fixed encoding: a label of the experiment, or sin_cos or sin_cos_2d");
      });
  add("noise", "Accuracy under noise on the token embeddings",
      "lengthwise analyze noise table3-1\n"
      "lengthwise analyze noise table3-1 --output csv > noise.csv");
  add("humans", "Models and people compared puzzle by puzzle",
      "lengthwise analyze humans table3-1 --file people.json", [](Command command) {
        command
            .AddOption("--file FILE",
                       "JSON: {\"puzzles\": [{\"puzzle\": \"0040405210200030\", "
                       "\"human_accuracy\": 0.975}, ...]}")
            .Required();
      });
  add("carries", "Share of wrong digits with an incoming carry, against chance",
      "lengthwise analyze carries figure4-1\n"
      "lengthwise analyze carries figure4-1 --length 100 --output csv > places.csv",
      [](Command command) { AddLength(command); });
  add("carry_chains", "Accuracy of the digits of sums by length of the carry chain",
      "lengthwise analyze carry_chains figure4-1 --length 50",
      [](Command command) { AddLength(command); });
  add("speed", "Steps per second, and time to reach an accuracy",
      "lengthwise analyze speed figure2_long figure2_randomized", [](Command command) {
        command.AddOption<double>(
            "--accuracy SHARE",
            "Mean accuracy on unseen lengths to reach, above 0 and below 1; default 0.9");
      });
  add("loss_ratios", "Ratio of one network's losses to others' on unseen lengths",
      "lengthwise analyze loss_ratios figure2-1 --reference standard --compare "
      "positional_attention/figure_2",
      [](Command command) {
        AddReference(command, "Network whose losses are divided by the others'", "NETWORK");
        command.AddOption("--compare KEY",
                          "Published table to compare with, such as positional_attention/figure_2");
      });
  add("t_test", "Paired t-tests between encodings, seed by seed",
      "lengthwise analyze t_test table1-1 --reference 2d_fixed\n"
      "lengthwise analyze t_test table1-1 --reference 2d_fixed --length 2",
      [](Command command) {
        AddReference(command, "Encoding to test the others against");
        AddLength(command, "Evaluated length to test; default: the mean over unseen lengths");
      });
}

}  // namespace lengthwise::client
