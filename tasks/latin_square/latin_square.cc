#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/mutex.h"
#include "platform/status_macros.h"
#include "random/stream.h"
#include "tasks/all_tasks.h"
#include "tasks/latin_square/generator.h"
#include "tasks/latin_square/puzzle.h"
#include "tasks/puzzles.h"

namespace lengthwise::tasks::latin_square {
namespace {

struct Settings {
  int64_t training_puzzles = 0;
  int64_t held_out_puzzles = 0;
  int64_t validation_puzzles = 0;
  uint64_t puzzle_seed = 0;
  double minimum_dissimilarity = 0;
  PuzzleStyle style;
  std::string training_file;
  std::string validation_file;
};

// Every cell is deducible, as in the puzzles of the human study. Those have 4 to 11 clues, most of
// them 6 to 8. Training puzzles are those that differ enough from the validation puzzles, so their
// clues follow these: beside the study's own (validation_file) 3 % would need another number of
// clues to be distributed as in the authors' data, beside generated ones a fifth to two fifths.
constexpr PuzzleStyle kValidationStyle = {
    .blanking = Blanking::kDeducible, .fewest_clues = 3, .most_clues = 9};

// The part of the data that all seeds share.
struct Puzzles {
  std::vector<SolvedPuzzle> pool;  // training and held-out puzzles together
  std::vector<SolvedPuzzle> validation;
};

PuzzleSet AsSet(absl::Span<const SolvedPuzzle* const> puzzles) {
  PuzzleSet set;
  set.tokens.reserve(puzzles.size() * kCells);
  for (const SolvedPuzzle* solved : puzzles) {
    set.tokens.insert(set.tokens.end(), solved->puzzle.begin(), solved->puzzle.end());
    set.classes.push_back(solved->deduction.symbol - 1);
    set.conditions.push_back(solved->deduction.vectors - 1);
  }
  return set;
}

// The folder of puzzle files, set by the worker's operator. Every submitter writes specifications,
// so they must not name any other file on the worker's machine.
constexpr char kFolderVariable[] = "LENGTHWISE_PUZZLE_DIR";

absl::StatusOr<std::string> PathOf(const std::string& name) {
  const bool leaves = name.find('/') != std::string::npos || name == "." || name == "..";
  if (leaves) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name,
        "\" is not in the worker's puzzle folder: give the file's name without a path"));
  }
  const char* folder = std::getenv(kFolderVariable);
  if (folder == nullptr || *folder == '\0') {
    return absl::InvalidArgumentError(absl::StrCat("this worker has no puzzle folder for \"", name,
                                                   "\": start it with ", kFolderVariable,
                                                   " set to one"));
  }
  return absl::StrCat(folder, "/", name);
}

absl::StatusOr<std::vector<SolvedPuzzle>> FromFile(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  return ReadPuzzleFile(path);
}

class LatinSquareTask final : public PuzzleTask {
 public:
  explicit LatinSquareTask(Settings settings) : settings_(std::move(settings)) {}

  int64_t cells() const override { return kCells; }
  int32_t token_values() const override { return kCellValues; }
  int32_t classes() const override { return kSide; }

  int64_t training_puzzles() const override { return settings_.training_puzzles; }

  absl::Span<const std::string> conditions() const override {
    static const auto& names =
        *new std::vector<std::string>{"one-vector", "two-vector", "three-vector"};
    return names;
  }

  absl::StatusOr<PuzzleData> Data(uint64_t seed) const override {
    ASSIGN_OR_RETURN(const Puzzles* puzzles, SharedPuzzles());
    // Random for each seed; the released code has one split for all.
    const std::vector<SolvedPuzzle>& pool = puzzles->pool;
    random::Stream stream(seed, random::Purpose::kPuzzles, /*step=*/0,
                          static_cast<uint32_t>(Part::kSplit));
    const std::vector<int64_t> order = random::SampleWithoutReplacement(
        stream, static_cast<int64_t>(pool.size()), static_cast<int64_t>(pool.size()),
        /*sorted=*/false);
    std::vector<const SolvedPuzzle*> shuffled, validation;
    shuffled.reserve(order.size());
    for (const int64_t place : order) shuffled.push_back(&pool[static_cast<size_t>(place)]);
    for (const SolvedPuzzle& puzzle : puzzles->validation) validation.push_back(&puzzle);
    const auto training = static_cast<size_t>(settings_.training_puzzles);
    const absl::Span<const SolvedPuzzle* const> all = shuffled;
    return PuzzleData{
        .training = AsSet(all.subspan(0, training)),
        .held_out = AsSet(all.subspan(training, static_cast<size_t>(settings_.held_out_puzzles))),
        .validation = AsSet(validation)};
  }

  std::string Format(absl::Span<const int32_t> tokens) const override {
    return absl::StrJoin(tokens, "");
  }

 private:
  // The result never changes once it is made, so callers read it without the lock.
  absl::StatusOr<const Puzzles*> SharedPuzzles() const {
    const platform::MutexLock lock(mutex_);
    if (!puzzles_) {
      Puzzles made;
      ASSIGN_OR_RETURN(made.validation, Validation());
      ASSIGN_OR_RETURN(made.pool, Pool(made.validation));
      puzzles_ = std::move(made);
    }
    return &*puzzles_;
  }

  absl::StatusOr<std::vector<SolvedPuzzle>> Validation() const {
    if (!settings_.validation_file.empty()) return FromFile(settings_.validation_file);
    if (!settings_.training_file.empty()) {
      return absl::InvalidArgumentError(
          "training_file needs a validation_file: puzzles that differ from given ones by "
          "minimum_dissimilarity are too rare to generate");
    }
    ASSIGN_OR_RETURN(const std::vector<SolvedPuzzle> originals,
                     GeneratePuzzles({.style = kValidationStyle,
                                      .count = (settings_.validation_puzzles + 2) / 3},
                                     settings_.puzzle_seed, Part::kValidation));
    std::vector<SolvedPuzzle> puzzles = WithVariants(originals, settings_.puzzle_seed);
    puzzles.resize(static_cast<size_t>(settings_.validation_puzzles));
    return puzzles;
  }

  absl::StatusOr<std::vector<SolvedPuzzle>> Pool(
      const std::vector<SolvedPuzzle>& validation) const {
    const int64_t count = settings_.training_puzzles + settings_.held_out_puzzles;
    std::vector<Puzzle> apart_from;
    for (const SolvedPuzzle& solved : validation) apart_from.push_back(solved.puzzle);
    if (settings_.training_file.empty()) {
      return GeneratePuzzles({.style = settings_.style,
                              .count = count,
                              .apart_from = apart_from,
                              .minimum_dissimilarity = settings_.minimum_dissimilarity},
                             settings_.puzzle_seed, Part::kPool);
    }
    ASSIGN_OR_RETURN(std::vector<SolvedPuzzle> pool, FromFile(settings_.training_file));
    if (static_cast<int64_t>(pool.size()) < count) {
      return absl::InvalidArgumentError(absl::StrCat(
          settings_.training_file, " has ", pool.size(), " puzzles; training_puzzles (",
          settings_.training_puzzles, ") and held_out_puzzles (", settings_.held_out_puzzles,
          ") must not sum to more"));
    }
    const absl::flat_hash_set<Puzzle> held_back(apart_from.begin(), apart_from.end());
    for (const SolvedPuzzle& solved : pool) {
      if (held_back.contains(solved.puzzle)) {
        return absl::InvalidArgumentError(
            absl::StrCat(FormatPuzzle(solved.puzzle), " is in training_file and validation_file"));
      }
    }
    return pool;
  }

  const Settings settings_;
  mutable platform::Mutex mutex_;
  mutable std::optional<Puzzles> puzzles_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<Task> Create(const catalogue::Parameters& parameters) {
  Settings settings;
  settings.training_puzzles = parameters.Int("training_puzzles");
  settings.held_out_puzzles = parameters.Int("held_out_puzzles");
  settings.validation_puzzles = parameters.Int("validation_puzzles");
  settings.puzzle_seed = static_cast<uint64_t>(parameters.Int("puzzle_seed"));
  settings.minimum_dissimilarity = parameters.Double("minimum_dissimilarity");
  settings.style.blanking =
      parameters.String("blanking") == "published" ? Blanking::kPublished : Blanking::kDeducible;
  settings.style.fewest_clues = static_cast<int>(parameters.Int("fewest_clues"));
  settings.style.most_clues = static_cast<int>(parameters.Int("most_clues"));
  settings.training_file = parameters.String("training_file");
  settings.validation_file = parameters.String("validation_file");
  return std::make_unique<LatinSquareTask>(std::move(settings));
}

}  // namespace

TaskEntry LatinSquare() {
  return {
      {.name = "latin_square",
       .title = "Latin Square Task",
       .documentation =
           "Fills in the target cell of a 4 x 4 grid in which no symbol from 1 to 4 occurs twice "
           "in a row or column. One row or column settles it, or a row with a column, or three "
           "lines: the conditions of one, two and three vectors. Ito et al., \"The Importance of "
           "Positional Encoding Initialization in Transformers for Relational Reasoning\", section "
           "2.1. Validation puzzles differ from all training puzzles.",
       .parameters =
           {{.name = "training_puzzles",
             .default_value = int64_t{8000},
             .documentation = "Number of training puzzles, about equally many of each condition.",
             .minimum = 1,
             .maximum = 20000},
            {.name = "held_out_puzzles",
             .default_value = int64_t{1000},
             .documentation =
                 "Number of puzzles generated like the training puzzles but not trained on, "
                 "drawn for each data seed. The paper has 8,000 training puzzles; its released "
                 "code takes 8,100 of 9,000, the same for all seeds.",
             .minimum = 0,
             .maximum = 20000},
            {.name = "validation_puzzles",
             .default_value = int64_t{108},
             .documentation = "Number of puzzles that differ from all others, equally many of each "
                              "condition. A third of them are originals; the rest are rotated and "
                              "renamed variants, as in the human study's 108.",
             .minimum = 3,
             .maximum = 300},
            {.name = "puzzle_seed",
             .default_value = int64_t{0},
             .documentation = "Seed of the puzzles. Trials that differ only in their data seed "
                              "share the puzzles, split differently, and the validation puzzles.",
             .minimum = 0},
            {.name = "minimum_dissimilarity",
             .default_value = 0.8,
             .documentation = "Minimum Jaccard dissimilarity of training puzzles to every "
                              "validation puzzle, exclusive, over the cells' 80 one-hot features, "
                              "including the target's (section 2.2).",
             .minimum = 0,
             .maximum = 0.85},
            {.name = "blanking",
             .default_value = std::string("published"),
             .documentation =
                 "Cells that may be blanked. \"deducible\": only cells whose symbol their row or "
                 "column still settles. \"published\": like the authors' program, which requires "
                 "that of the first column only; their puzzles have this distribution.",
             .allowed = {"published", "deducible"}},
            {.name = "fewest_clues",
             .default_value = int64_t{3},
             .documentation = "Blanking stops at a number of clues drawn between this and "
                              "most_clues. The paper does not state it; its puzzles have 3 to 11.",
             .minimum = 0,
             .maximum = 7},
            {.name = "most_clues",
             .default_value = int64_t{11},
             .documentation = "See fewest_clues.",
             .minimum = 8,
             .maximum = 12},
            {.name = "training_file",
             .default_value = std::string(),
             .documentation =
                 "Name of a JSON file of puzzles, from which training and held-out puzzles are "
                 "drawn. The worker's environment variable LENGTHWISE_PUZZLE_DIR names its folder. "
                 "Needs a validation_file. Empty: generates puzzles."},
            {.name = "validation_file",
             .default_value = std::string(),
             .documentation = "Name of a file of validation puzzles in the same folder; all are "
                              "used, in the file's order. Empty: generates puzzles."}}},
      TaskKind::kPuzzle,
      "",
      0.25,
      Create,
      /*permutation_invariant=*/false,
      /*axis=*/"vectors",
      /*axis_title=*/"number of vectors",
      /*accuracy_title=*/"accuracy",
      // Validation puzzles differ from all training puzzles, so none of the axis counts as seen.
      /*seen_up_to=*/0};
}

}  // namespace lengthwise::tasks::latin_square
