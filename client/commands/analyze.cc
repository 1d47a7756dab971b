// `lengthwise analyze ANALYSIS EXPERIMENT...`: what can be asked of stored maps, models and scores.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/analysis/analysis_report.h"
#include "client/analysis/recorded_scores.h"
#include "client/analysis/trial_sets.h"
#include "client/commands/commands.h"
#include "client/plotting/plot_data.h"

namespace lengthwise::client {
namespace {

struct AnalyzeOptions {
  std::vector<std::string> experiments;
  std::string reference;
  // attention
  std::string measure = "cosine";
  std::string compare;
  // humans
  std::string file;
};

// What every analysis starts from.
struct Subject {
  Connection* connection = nullptr;
  std::vector<PlotExperiment> experiments;
  std::vector<TrialSet> sets;
};

absl::StatusOr<Subject> Fetch(Program& program, const AnalyzeOptions& options) {
  auto connection = program.Connect();
  if (!connection.ok()) return connection.status();
  auto experiments = FetchExperiments(**connection, options.experiments, TrialFilter(),
                                      /*with_intervals=*/false);
  if (!experiments.ok()) return experiments.status();
  Subject subject{.connection = *connection, .experiments = *std::move(experiments)};
  subject.sets = SetsOfTrials(subject.experiments);
  if (!subject.sets.empty()) return subject;
  return absl::FailedPreconditionError(absl::StrCat("no trial of ",
                                                    ExperimentNames(subject.experiments),
                                                    " has succeeded yet: nothing to analyze"));
}

int Print(Program& program, const Subject& subject, const AnalysisReport& report) {
  std::ostream& out = program.out();
  if (program.output == "json" || program.output == "csv") {
    program.Write(report.table.ToRecords());
    return kSuccess;
  }
  const Table table = report.table.ToTable();
  if (program.output == "markdown" || program.output == "latex") {
    out << (program.output == "latex" ? table.RenderLatex() : table.RenderMarkdown());
    return kSuccess;
  }
  out << program.palette()(Paint::kBold, ExperimentNames(subject.experiments)) << "\n\n"
      << Wrap(report.caption, program.width(), 0) << "\n\n"
      << table.Render(program.width(), program.palette());
  if (!report.remarks.empty()) out << "\n";
  for (const std::string& remark : report.remarks) out << Wrap(remark, program.width(), 2) << "\n";
  return kSuccess;
}

absl::StatusOr<int> Attention(Program& program, const AnalyzeOptions& options) {
  const AttentionMeasure measure =
      options.measure == "cosine" ? AttentionMeasure::kCosine : AttentionMeasure::kJensenShannon;
  std::optional<PublishedTable> published;
  if (!options.compare.empty()) {
    auto table = FindPublishedTable(options.compare);
    if (!table.ok()) return table.status();
    if (table->quantity != Quantity::kAttentionCosine || measure != AttentionMeasure::kCosine) {
      return absl::InvalidArgumentError(
          absl::StrCat("--compare: ", options.compare, " has no ",
                       measure == AttentionMeasure::kCosine ? "cosines" : "divergences",
                       " of attention maps; lst_pe_init/table_3 has cosines"));
    }
    published = *std::move(table);
  }
  auto subject = Fetch(program, options);
  if (!subject.ok()) return subject.status();
  auto comparison =
      CompareAttention(*subject->connection, subject->sets, options.reference, measure);
  if (!comparison.ok()) return comparison.status();
  return Print(program, *subject,
               ReportAttention(*comparison, options.reference, measure,
                               Accuracies(subject->experiments), published));
}

absl::StatusOr<int> GroundTruth(Program& program, const AnalyzeOptions& options) {
  auto subject = Fetch(program, options);
  if (!subject.ok()) return subject.status();
  auto rows = CompareWithGroundTruth(*subject->connection, subject->sets);
  if (!rows.ok()) return rows.status();
  return Print(program, *subject, ReportGroundTruth(*rows, Accuracies(subject->experiments)));
}

absl::StatusOr<int> Encodings(Program& program, const AnalyzeOptions& options) {
  auto subject = Fetch(program, options);
  if (!subject.ok()) return subject.status();
  auto reference = FixedEncoding::Find(options.reference, subject->experiments);
  if (!reference.ok()) return reference.status();
  auto distances = MeasureEncodings(*subject->connection, subject->sets, *reference);
  if (!distances.ok()) return distances.status();
  return Print(program, *subject,
               ReportEncodings(*distances, options.reference, Accuracies(subject->experiments)));
}

absl::StatusOr<int> Noise(Program& program, const AnalyzeOptions& options) {
  auto subject = Fetch(program, options);
  if (!subject.ok()) return subject.status();
  auto scores = FetchRecordedScores(*subject->connection, subject->experiments);
  if (!scores.ok()) return scores.status();
  auto curves = MakeNoiseCurves(subject->experiments, subject->sets, *scores);
  if (!curves.ok()) return curves.status();
  return Print(program, *subject, ReportNoise(*curves));
}

absl::StatusOr<int> Humans(Program& program, const AnalyzeOptions& options) {
  // A file that cannot be read is told before a server is asked.
  auto humans = ReadHumanAccuracies(options.file);
  if (!humans.ok()) return humans.status();
  auto subject = Fetch(program, options);
  if (!subject.ok()) return subject.status();
  auto scores = FetchRecordedScores(*subject->connection, subject->experiments);
  if (!scores.ok()) return scores.status();
  auto comparisons = CompareWithHumans(subject->sets, *scores, *humans);
  if (!comparisons.ok()) return comparisons.status();
  return Print(program, *subject, ReportHumans(*comparisons));
}

absl::StatusOr<int> TTest(Program& program, const AnalyzeOptions& options) {
  auto subject = Fetch(program, options);
  if (!subject.ok()) return subject.status();
  auto comparisons =
      CompareSeeds(subject->sets, options.reference, Accuracies(subject->experiments));
  if (!comparisons.ok()) return comparisons.status();
  return Print(program, *subject, ReportSeeds(*comparisons, options.reference));
}

void AddReference(CLI::App* command, AnalyzeOptions& options, const std::string& help) {
  command->add_option("--reference", options.reference, help)->required()->type_name("ENCODING");
}

}  // namespace

void AddAnalyze(CLI::App& app, Program& program) {
  CLI::App* analyze = app.add_subcommand(
      "analyze", "Analyzes stored attention maps, models and scores of single sequences");
  analyze->group(kServerGroup);
  analyze->require_subcommand(1);
  analyze->footer(
      "Examples:\n"
      "  lengthwise analyze attention table3-1 --reference 2d_fixed\n"
      "  lengthwise analyze ground_truth table3-1\n"
      "  lengthwise analyze encodings table2-1 --reference sin_cos_2d\n"
      "  lengthwise analyze noise table3-1\n"
      "  lengthwise analyze humans table3-1 --file people.json\n"
      "  lengthwise analyze t_test table1-1 --reference 2d_fixed\n"
      "Several experiments are analyzed as one: trials that differ in nothing but seeds make a "
      "row.\n"
      "What was trained otherwise under the same labels has a row of its own, with its "
      "experiment.");

  using Analysis = absl::StatusOr<int> (*)(Program&, const AnalyzeOptions&);
  const auto add = [&](const std::string& name, const std::string& description,
                       const std::string& examples, Analysis analysis) {
    auto options = std::make_shared<AnalyzeOptions>();
    CLI::App* command =
        program.AddCommand(*analyze, name, description, "", examples,
                           [&program, options, analysis] { return analysis(program, *options); });
    command
        ->add_option("experiments", options->experiments,
                     "Experiments, or single trials as EXPERIMENT/TRIAL")
        ->required()
        ->type_name("");
    return std::make_pair(command, options);
  };
  const auto finish = [&](CLI::App* command) {
    program.AddServerOption(command);
    program.AddDataDirOption(command);
    program.AddOutputOption(command, {"table", "json", "csv", "markdown", "latex"});
  };

  {
    const auto [command, options] =
        add("attention", "How alike attention maps are to those of an encoding",
            "lengthwise analyze attention table3-1 --reference 2d_fixed\n"
            "lengthwise analyze attention table3-1 --reference 2d_fixed --compare "
            "lst_pe_init/table_3\n"
            "lengthwise analyze attention table3-1 --reference 2d_fixed --measure js",
            Attention);
    AddReference(command, *options, "The encoding whose maps the others are compared with");
    command
        ->add_option("--measure", options->measure,
                     "cosine of all probabilities, or js: Jensen-Shannon divergence; default "
                     "cosine")
        ->check(CLI::IsMember({"cosine", "js"}))
        ->type_name("NAME");
    command
        ->add_option("--compare", options->compare,
                     "Beside this published table, such as lst_pe_init/table_3")
        ->type_name("KEY");
    finish(command);
  }
  {
    const auto [command, options] =
        add("ground_truth", "How much of attention goes to what the answers of puzzles depend on",
            "lengthwise analyze ground_truth table3-1\n"
            "lengthwise analyze ground_truth table3-1 --output csv > shares.csv",
            GroundTruth);
    finish(command);
  }
  {
    const auto [command, options] =
        add("encodings", "How far learned tables of positions are from a fixed encoding's",
            "lengthwise analyze encodings table2-1 --reference sin_cos_2d", Encodings);
    AddReference(command, *options,
                 "The fixed encoding: a label of the experiment, or sin_cos or sin_cos_2d");
    finish(command);
  }
  {
    const auto [command, options] =
        add("noise", "Accuracy when noise is added to the embeddings of tokens",
            "lengthwise analyze noise table3-1\n"
            "lengthwise analyze noise table3-1 --output csv > noise.csv",
            Noise);
    finish(command);
  }
  {
    const auto [command, options] =
        add("humans", "Puzzle by puzzle beside people's accuracies from a file",
            "lengthwise analyze humans table3-1 --file people.json", Humans);
    command
        ->add_option("--file", options->file,
                     "JSON: {\"puzzles\": [{\"puzzle\": \"0040405210200030\", "
                     "\"human_accuracy\": 0.975}, ...]}")
        ->required()
        ->type_name("FILE");
    finish(command);
  }
  {
    const auto [command, options] =
        add("t_test", "Whether encodings differ, seed by seed: paired t-tests",
            "lengthwise analyze t_test table1-1 --reference 2d_fixed", TTest);
    AddReference(command, *options, "The encoding that the others are tested against");
    finish(command);
  }
}

}  // namespace lengthwise::client
