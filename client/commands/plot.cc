// `lengthwise plot EXPERIMENT --figure KIND`: pictures of results.
#include <cstdlib>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/suggestion.h"
#include "client/analysis/analysis_figures.h"
#include "client/analysis/recorded_scores.h"
#include "client/analysis/trial_sets.h"
#include "client/commands/commands.h"
#include "client/commands/figure_names.h"
#include "client/plotting/accuracy_by_length.h"
#include "client/plotting/accuracy_of_trials.h"
#include "client/plotting/accuracy_over_steps.h"
#include "client/plotting/accuracy_over_time.h"
#include "client/plotting/answer_errors.h"
#include "client/plotting/attention_figure.h"
#include "client/plotting/gnuplot.h"
#include "client/plotting/length_sweep.h"
#include "client/plotting/loss_figure.h"
#include "client/plotting/plot_data.h"
#include "client/plotting/projection_figure.h"
#include "client/plotting/terminal_figure.h"
#include "client/rendering/user_file.h"
#include "client/terminal/browser.h"

namespace lengthwise::client {
namespace {

constexpr int kLeastPixels = 100;
constexpr int kMostPixels = 10'000;

struct PlotOptions {
  std::vector<std::string> experiments;
  std::string figure;
  TrialFilter filter;
  AttentionChoice attention;
  std::string metric;
  std::string parameter;
  std::string reference;
  std::string out;
  std::string title;
  PictureSize size;
  std::string script;
  bool terminal = false;
  bool open = false;
};

using Experiments = std::vector<PlotExperiment>;

// A figure by its name: what it needs beside trials and accuracies, and how it is made.
struct FigureKind {
  bool needs_intervals = false;
  absl::Status (*fetch)(Connection&, const PlotOptions&, Experiments&) = nullptr;
  absl::StatusOr<Figure> (*make)(const Experiments&, const PlotOptions&) = nullptr;
  // Or by queries of its own, of an analysis.
  absl::StatusOr<Figure> (*analyze)(Connection&, const PlotOptions&, const Experiments&) = nullptr;
};

absl::StatusOr<Figure> NoisePicture(Connection& connection, const PlotOptions&,
                                    const Experiments& experiments) {
  auto scores = FetchRecordedScores(connection, experiments);
  if (!scores.ok()) return scores.status();
  const std::vector<TrialSet> sets = SetsOfTrials(experiments);
  auto curves = MakeNoiseCurves(experiments, sets, *scores);
  if (!curves.ok()) return curves.status();
  return NoiseFigure(*curves, experiments);
}

absl::StatusOr<Figure> AttentionSimilarityPicture(Connection& connection,
                                                  const PlotOptions& options,
                                                  const Experiments& experiments) {
  const std::vector<TrialSet> sets = SetsOfTrials(experiments);
  auto comparison =
      CompareAttention(connection, sets, options.reference, AttentionMeasure::kCosine);
  if (!comparison.ok()) return comparison.status();
  return AttentionSimilarityFigure(*comparison, options.reference, experiments);
}

absl::StatusOr<Figure> GroundTruthPicture(Connection& connection, const PlotOptions&,
                                          const Experiments& experiments) {
  const std::vector<TrialSet> sets = SetsOfTrials(experiments);
  auto rows = CompareWithGroundTruth(connection, sets);
  if (!rows.ok()) return rows.status();
  return GroundTruthFigure(*rows, experiments);
}

absl::StatusOr<Figure> EncodingDistancePicture(Connection& connection, const PlotOptions& options,
                                               const Experiments& experiments) {
  auto reference = FixedEncoding::Find(options.reference, experiments);
  if (!reference.ok()) return reference.status();
  const std::vector<TrialSet> sets = SetsOfTrials(experiments);
  auto distances = MeasureEncodings(connection, sets, *reference);
  if (!distances.ok()) return distances.status();
  return EncodingDistanceFigure(*distances, options.reference, experiments);
}

const std::map<std::string, FigureKind>& FigureKinds() {
  static const auto& kinds = *new std::map<std::string, FigureKind>{
      {"accuracy_by_length",
       {.make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return AccuracyByLengthFigure(experiments, options.metric);
            }}},
      {"accuracy_of_trials",
       {.make = [](const Experiments& experiments,
                   const PlotOptions&) { return AccuracyOfTrialsFigure(experiments); }}},
      {"accuracy_over_steps",
       {.needs_intervals = true,
        .make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return AccuracyOverStepsFigure(experiments, options.metric, options.attention.length);
            }}},
      {"accuracy_over_time",
       {.needs_intervals = true,
        .make = [](const Experiments& experiments,
                   const PlotOptions&) { return AccuracyOverTimeFigure(experiments); }}},
      {"attention_ground_truth", {.analyze = GroundTruthPicture}},
      {"attention_similarity", {.analyze = AttentionSimilarityPicture}},
      {"encoding_distance", {.analyze = EncodingDistancePicture}},
      {"noise", {.analyze = NoisePicture}},
      {"attention",
       {.fetch =
            [](Connection& connection, const PlotOptions& options, Experiments& experiments) {
              return FetchAttention(connection, options.attention.length, experiments);
            },
        .make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return AttentionFigure(experiments, options.attention);
            }}},
      {"error_counts",
       {.fetch = [](Connection& connection, const PlotOptions&,
                    Experiments& experiments) { return FetchAnalyses(connection, experiments); },
        .make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return ErrorCountsFigure(experiments, options.attention.length);
            }}},
      {"error_places",
       {.fetch = [](Connection& connection, const PlotOptions&,
                    Experiments& experiments) { return FetchAnalyses(connection, experiments); },
        .make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return ErrorPlacesFigure(experiments, options.attention.length);
            }}},
      {"length_sweep",
       {.make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return LengthSweepFigure(experiments, options.parameter);
            }}},
      {"loss",
       {.fetch = [](Connection& connection, const PlotOptions&,
                    Experiments& experiments) { return FetchLosses(connection, experiments); },
        .make =
            [](const Experiments& experiments, const PlotOptions& options) {
              return LossFigure(experiments, options.metric);
            }}},
      {"projection",
       {.fetch = [](Connection& connection, const PlotOptions&,
                    Experiments& experiments) { return FetchProjections(connection, experiments); },
        .make = [](const Experiments& experiments,
                   const PlotOptions&) { return ProjectionFigure(experiments); }}},
  };
  return kinds;
}

absl::StatusOr<PictureFormat> FormatOf(const std::string& path) {
  if (absl::EndsWith(path, ".svg")) return PictureFormat::kSvg;
  if (absl::EndsWith(path, ".png")) return PictureFormat::kPng;
  return absl::InvalidArgumentError(
      absl::StrCat("--out is \"", path, "\"; its name must end with .svg or .png"));
}

// Mistakes that can be told before a server is asked.
absl::Status Check(const PlotOptions& options) {
  if (FigureKinds().count(options.figure) == 0) {
    const std::vector<std::string> names = FigureNames();
    return absl::InvalidArgumentError(
        options.figure.empty()
            ? absl::StrCat("say what to draw: --figure ", absl::StrJoin(names, "|"))
            : absl::StrCat("unknown figure \"", options.figure, "\"",
                           catalogue::Suggestion(options.figure, names)));
  }
  if (!options.out.empty()) {
    if (absl::Status status = FormatOf(options.out).status(); !status.ok()) return status;
  }
  for (const std::string& path : {options.out, options.script}) {
    if (path.empty()) continue;
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
  for (const int pixels : {options.size.width, options.size.height}) {
    if (pixels != 0 && (pixels < kLeastPixels || pixels > kMostPixels)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a picture of ", pixels, " pixels? Accepted: ", kLeastPixels, " to ", kMostPixels));
    }
  }
  if ((options.attention.layer != 0 || options.attention.head != 0) &&
      options.figure != "attention") {
    return absl::InvalidArgumentError("--layer and --head are for the figure attention alone");
  }
  if (options.attention.length != 0 && options.figure != "attention" &&
      options.figure != "error_counts" && options.figure != "error_places" &&
      options.figure != "accuracy_over_steps") {
    return absl::InvalidArgumentError(
        "--length is for the figures accuracy_over_steps, attention, error_counts and "
        "error_places");
  }
  if (!options.metric.empty() && options.figure != "accuracy_by_length" &&
      options.figure != "accuracy_over_steps" && options.figure != "loss") {
    return absl::InvalidArgumentError(
        "--metric is for the figures accuracy_by_length, accuracy_over_steps and loss");
  }
  const bool compares =
      options.figure == "attention_similarity" || options.figure == "encoding_distance";
  if (compares == options.reference.empty()) {
    return absl::InvalidArgumentError(
        compares
            ? absl::StrCat("the figure ", options.figure,
                           " needs --reference, the encoding that the others are compared with")
            : "--reference is for the figures attention_similarity and encoding_distance");
  }
  if (!options.parameter.empty() && options.figure != "length_sweep") {
    return absl::InvalidArgumentError("--parameter is for the figure length_sweep alone");
  }
  return absl::OkStatus();
}

// "quickstart-1-loss", or "a-1-b-1-loss" for several experiments.
std::string DefaultStem(const Experiments& experiments, const std::string& figure) {
  std::string stem;
  for (const PlotExperiment& experiment : experiments) absl::StrAppend(&stem, experiment.name, "-");
  return stem + figure;
}

absl::StatusOr<int> Plot(Program& program, const PlotOptions& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  const FigureKind& kind = FigureKinds().at(options.figure);
  auto connection = program.Connect();
  if (!connection.ok()) return connection.status();
  auto experiments =
      FetchExperiments(**connection, options.experiments, options.filter, kind.needs_intervals);
  if (!experiments.ok()) return experiments.status();
  if (kind.fetch != nullptr) {
    if (absl::Status status = kind.fetch(**connection, options, *experiments); !status.ok()) {
      return status;
    }
  }
  auto figure = kind.analyze != nullptr ? kind.analyze(**connection, options, *experiments)
                                        : kind.make(*experiments, options);
  if (!figure.ok()) return figure.status();
  if (!options.title.empty()) figure->title = options.title;

  if (options.terminal) {
    auto text = RenderFigure(*figure, program.width(), program.palette());
    if (!text.ok()) return text.status();
    program.out() << *text;
    return kSuccess;
  }
  std::vector<Picture> pictures;
  if (!options.out.empty()) {
    pictures.push_back({*FormatOf(options.out), options.out});
  } else {
    const std::string stem = DefaultStem(*experiments, options.figure);
    pictures = {{PictureFormat::kSvg, stem + ".svg"}, {PictureFormat::kPng, stem + ".png"}};
  }
  if (!options.script.empty()) {
    const auto script = GnuplotScript(*figure, options.size, pictures);
    if (!script.ok()) return script.status();
    if (absl::Status status = WriteForUser(options.script, *script); !status.ok()) return status;
    program.out() << options.script << "\n";
  }
  if (absl::Status status = DrawPictures(*figure, options.size, pictures); !status.ok()) {
    return status;
  }
  for (const Picture& picture : pictures) program.out() << picture.path << "\n";
  program.out().flush();
  if (options.open) {
    const absl::Status opened = OpenInBrowser(pictures[0].path, std::getenv);
    if (!opened.ok()) return opened;
  }
  return kSuccess;
}

}  // namespace

std::vector<std::string> FigureNames() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : FigureKinds()) names.push_back(name);
  return names;
}

void AddPlot(CLI::App& app, Program& program) {
  auto options = std::make_shared<PlotOptions>();
  CLI::App* command = program.AddCommand(
      app, "plot", "Draws results as SVG and PNG, or in the terminal", kServerGroup,
      "lengthwise plot quickstart-1 --figure accuracy_by_length\n"
      "lengthwise plot quickstart-1 --figure loss --terminal\n"
      "lengthwise plot quickstart-1 --figure loss --open\n"
      "lengthwise plot table1 --figure accuracy_by_length --task reverse_string -o figure4.svg\n"
      "lengthwise plot figure6 --figure attention --length 40 --width 1600 -o figure6.png\n"
      "lengthwise plot figure2_long figure2_randomized --figure accuracy_over_time\n"
      "lengthwise plot figure5 --figure accuracy_by_length --metric rounding_accuracy\n"
      "\n"
      "Figures:\n"
      "  accuracy_by_length     accuracy at each length after training, a panel a task\n"
      "  accuracy_of_trials     the same of every single trial, to see what seeds make of it\n"
      "  error_places           where digits of answers are wrong; of text\n"
      "  error_counts           how many digits of wrong answers are wrong; of text\n"
      "  loss                   training loss over the steps\n"
      "  attention              which token looks at which; needs evaluation.attention_lengths\n"
      "  projection             activations in two dimensions; needs evaluation.projection\n"
      "  length_sweep           accuracy by a parameter of the encodings, such as max_position\n"
      "  accuracy_over_steps    accuracy at single lengths over training's steps, of every trial\n"
      "  accuracy_over_time     accuracy over training's wall clock; needs evaluation.every_steps\n"
      "  noise                  accuracy under noise; needs evaluation.embedding_noise\n"
      "  attention_ground_truth attention beside the cells that puzzles' answers depend on\n"
      "  attention_similarity   accuracy by the likeness of attention to --reference's\n"
      "  encoding_distance      accuracy by the distance of learned tables from --reference's\n"
      "\n"
      "Lines are means over seeds, with a band from the lowest to the highest, at the learning\n"
      "rate that is best on lengths not seen in training. Pictures are drawn by gnuplot (Debian's\n"
      "package gnuplot-nox); --script keeps what it was given.",
      [&program, options] { return Plot(program, *options); });
  command
      ->add_option("experiments", options->experiments,
                   "Experiments, or single trials as EXPERIMENT/TRIAL")
      ->required()
      ->type_name("");
  command->add_option("--figure", options->figure, "What to draw, of the figures below")
      ->type_name("KIND");
  command
      ->add_option("-o,--out", options->out,
                   "The file, .svg or .png; default: EXPERIMENT-KIND.svg and .png here")
      ->type_name("FILE");
  command->add_option("--task", options->filter.tasks, "Only this task; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--network", options->filter.networks, "Only this network; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--encoding", options->filter.encodings, "Only this encoding; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--learning_rate", options->filter.learning_rates,
                   "Only this learning rate; may be repeated")
      ->type_name("RATE")
      ->allow_extra_args(false);
  command
      ->add_option("--trial", options->filter.trials,
                   "Only this trial, by id or index; may be repeated")
      ->type_name("TRIAL")
      ->allow_extra_args(false);
  command->add_option("--layer", options->attention.layer, "attention: only this layer, from 1")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      ->add_option("--head", options->attention.head,
                   "attention: this head, from 1, instead of the maximum over heads")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      ->add_option("--length", options->attention.length,
                   "attention, accuracy_over_steps: only this input length; error_places, "
                   "error_counts: this number of digits instead of the largest")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      ->add_option("--sequence", options->attention.sequence,
                   "attention: of the sequences of a length this one, from 1; default the first")
      ->check(CLI::PositiveNumber)
      ->type_name("S");
  command
      ->add_option("--metric", options->metric,
                   "accuracy_by_length, accuracy_over_steps: instead of accuracy or loss, such as "
                   "rounding_accuracy; loss: loss or accuracy in training")
      ->type_name("NAME");
  command
      ->add_option("--parameter", options->parameter,
                   "length_sweep: the parameter of the encodings; default: the one that differs")
      ->type_name("NAME");
  command
      ->add_option("--reference", options->reference,
                   "attention_similarity, encoding_distance: the encoding to compare with")
      ->type_name("ENCODING");
  command->add_option("--title", options->title, "Instead of the picture's own")->type_name("TEXT");
  command->add_option("--width", options->size.width, "Of the picture; default: what suits it")
      ->type_name("PIXELS");
  command->add_option("--height", options->size.height, "Of the picture; default: what suits it")
      ->type_name("PIXELS");
  command->add_option("--script", options->script, "Also keep gnuplot's script, with the data")
      ->type_name("FILE");
  command->add_flag("--terminal", options->terminal,
                    "Draw in the terminal instead: accuracy_by_length, accuracy_over_steps, "
                    "accuracy_over_time, loss");
  command->add_flag("--open", options->open, "Then show it, with $BROWSER or xdg-open");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
}

}  // namespace lengthwise::client
