// `lengthwise plot EXPERIMENT --figure KIND`: draws figures of results.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/display/chart.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

struct FigureKind {
  const char* name;
  const char* description;
};

// FIGURES of python/lengthwise/plots, repeated here for help and completion.
constexpr FigureKind kFigures[] = {
    {"accuracy_by_length", "accuracy at each length after training, one panel per task"},
    {"accuracy_of_trials", "the same for every trial, to show the effect of seeds"},
    {"seed_distribution", "scores of all seeds, and the share of seeds above --threshold"},
    {"error_places", "positions of wrong digits; needs a task on text"},
    {"error_counts", "number of wrong digits per wrong answer; needs a task on text"},
    {"loss", "training loss over the steps"},
    {"loss_over_time", "training loss over training time; needs evaluation.every_steps"},
    {"attention", "attention maps; needs evaluation.attention_lengths"},
    {"projection", "activations in two dimensions; needs evaluation.projection"},
    {"length_sweep", "results by a parameter of encodings, training examples, length or rate"},
    {"accuracy_over_steps", "accuracy at single lengths over training steps, for every trial"},
    {"accuracy_over_epochs",
     "mean accuracy over epochs, for every trial; needs evaluation.every_steps"},
    {"accuracy_over_time", "accuracy over training time; needs evaluation.every_steps"},
    {"noise", "accuracy under noise; needs evaluation.embedding_noise"},
    {"attention_ground_truth", "attention next to the cells that puzzle answers depend on"},
    {"attention_similarity", "accuracy by similarity of attention to --reference's"},
    {"encoding_distance", "accuracy by distance of learned tables from --reference's"},
    {"noise_average", "accuracy averaged over the noise, one bar per encoding"},
    {"attention_matrix", "similarity of attention for every pair of encodings"},
    {"human_scores", "similarity of models and people, puzzle by puzzle; needs --people"},
    {"human_scatter", "accuracy of models by people's, one point per puzzle; needs --people"},
    {"error_carries", "errors with a carry into the wrong digit, against chance; needs sums"},
    {"carry_chains", "accuracy of digits by length of the carry chain; needs sums"},
    {"domain_bound", "upper bound on the probability that inputs lie within the training range"},
};

// Returns one line per figure: "    accuracy_by_length     accuracy at ...".
std::string FigureList() {
  size_t widest = 0;
  for (const FigureKind& kind : kFigures) widest = std::max(widest, std::string(kind.name).size());
  std::string text;
  for (const FigureKind& kind : kFigures) {
    const std::string name = kind.name;
    absl::StrAppend(&text, "  ", name, std::string(widest - name.size() + 1, ' '), kind.description,
                    "\n");
  }
  return text;
}

absl::StatusOr<int> Plot(Program& program, bool in_terminal) {
  if (!in_terminal) return program.RunPython(program.Given({"plot"}));
  program.output = "json";
  std::string figure;
  const auto code = program.RunPython(program.Given({"plot"}), /*asks_server=*/true, &figure);
  if (!code.ok() || *code != kSuccess) return code;
  ASSIGN_OR_RETURN(const auto text, RenderFigure(figure, program.width(), program.palette()));
  program.out() << text;
  return kSuccess;
}

}  // namespace

std::vector<std::string> FigureNames() {
  std::vector<std::string> names;
  for (const FigureKind& kind : kFigures) names.emplace_back(kind.name);
  return names;
}

void AddPlot(Command root, Program& program) {
  auto in_terminal = std::make_shared<bool>(false);
  const Command command = program.AddCommand(
      root, "plot", "Draws results as SVG, PDF and PNG, or in the terminal", kServerGroup,
      absl::StrCat(
          "lengthwise plot quickstart-1 --figure accuracy_by_length\n"
          "lengthwise plot quickstart-1 --figure loss --terminal\n"
          "lengthwise plot quickstart-1 --figure loss --open\n"
          "lengthwise plot table1 --figure accuracy_by_length --task reverse_string -o "
          "figure4.pdf\n"
          "lengthwise plot figure6 --figure attention --length 40 --width 1600 -o figure6.png\n"
          "lengthwise plot figure2_long figure2_randomized --figure accuracy_over_time\n"
          "lengthwise plot figure5 --figure accuracy_by_length --metric rounding_accuracy\n"
          "lengthwise plot addition_figure3 --figure accuracy_by_length --seeds best\n"
          "\n"
          "Figures:\n",
          FigureList(),
          "\n"
          "Lines are means over seeds, with a band from the lowest to the highest, at the "
          "learning\n"
          "rate that is best on lengths seen in training (--select). --data saves the drawn values "
          "as "
          "numbers,\n"
          "--script a Python program that draws it again with matplotlib, to be changed at will."),
      [&program, in_terminal] { return Plot(program, *in_terminal); });
  command.AddOption<std::vector<std::string>>("experiments",
                                              "Experiments, or single trials as EXPERIMENT/TRIAL");
  command.AddOption("--figure KIND", "Figure to draw, from the list below");
  command.AddOption(
      "-o,--out FILE",
      "File ending in .svg, .pdf or .png; default: EXPERIMENT-KIND.svg and .png here");
  const auto add_filter = [&](const std::string& usage, const std::string& description) {
    command.AddOption<std::vector<std::string>>(usage, description).OneByOne();
  };
  add_filter("--task NAME", "Only this task; may be repeated");
  add_filter("--network NAME", "Only this network; may be repeated");
  add_filter("--encoding NAME", "Only this encoding; may be repeated");
  add_filter("--learning_rate RATE", "Only this learning rate; may be repeated");
  add_filter("--trial TRIAL", "Only this trial, by id or index; may be repeated");
  const auto add_number = [&](const std::string& usage, const std::string& description) {
    command.AddOption<int32_t>(usage, description).Positive();
  };
  add_number("--layer N", "attention: only this layer, from 1");
  add_number("--head N", "attention: this head, from 1, instead of the maximum over heads");
  add_number(
      "--length N",
      "attention, accuracy_over_steps, length_sweep: only this input length; error_places, "
      "error_counts, error_carries, carry_chains: this number of digits instead of the largest");
  add_number("--sequence S",
             "attention: sequence among those of a length, from 1; default: the first");
  command.AddOption(
      "--metric NAME",
      "accuracy_by_length, accuracy_over_steps, accuracy_over_epochs: instead of accuracy or loss, "
      "such as rounding_accuracy; loss: loss or accuracy in training");
  command
      .AddOption("--seeds WHICH",
                 "accuracy_by_length: mean; best: the best seed before all others; all: the mean "
                 "before all seeds. loss, error_places, error_counts: mean or all")
      .OneOf({"mean", "best", "all"});
  add_number("--smooth N",
             "loss: points that a running mean is over, an odd number (an even one counts one "
             "more), 1 for none; default: a tenth of the curve, or none with --seeds all");
  command.AddOption<double>(
      "--threshold SHARE",
      "seed_distribution: accuracy from 0 to 1, or loss, that a seed must pass; "
      "default 0.9");
  command.AddOption("--parameter NAME",
                    "length_sweep: the parameter of the encodings, or examples, length or "
                    "learning_rate of the training; default: the one that differs");
  command.AddFlag(
      "--splits",
      "length_sweep over examples or length: training, validation and test next to each other");
  command.AddFlag("--together",
                  "accuracy_by_length: all tasks, such as formats of an addition, in one panel");
  command.AddOption("--reference ENCODING",
                    "attention_similarity, encoding_distance: the encoding to compare with");
  command.AddOption(
      "--people FILE",
      "human_scores, human_scatter: people's answers, as of `lengthwise analyze humans`");
  command.AddOption("--title TEXT", "Title that replaces the picture's own");
  command.AddFlag("--plain", "Leaves out title and caption, for papers with their own");
  add_number("--width PIXELS", "Width of the picture; default: chosen by figure");
  add_number("--height PIXELS", "Height of the picture; default: chosen by figure");
  command.AddOption("--data FILE", "Also keep what is drawn as numbers: .csv or .json");
  command.AddOption("--script FILE",
                    "Also keep a Python program, with the data, that draws the figure");
  command.AddFlag("--terminal", *in_terminal,
                  "Draw in the terminal instead: figures of lines over lengths, steps and time");
  command.AddFlag("--open", "Then show it, with $BROWSER or xdg-open");
  program.AddSelectOption(command);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
