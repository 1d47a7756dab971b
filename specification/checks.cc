#include "specification/checks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "catalogue/suggestion.h"
#include "platform/printable_text.h"
#include "specification/training_data.h"

namespace lengthwise::specification {
namespace {

constexpr size_t kMostDescription = 10'000;
constexpr int64_t kMostSteps = 1'000'000'000'000;
constexpr int kMostNoise = 1'000;
constexpr size_t kMostInputBytes = 1 << 16;

// Formats with thousands separators: "1,000,000".
std::string Grouped(absl::uint128 number) {
  if (number < 1'000) return absl::StrCat(static_cast<int>(number));
  return absl::StrCat(Grouped(number / 1'000), ",",
                      absl::Dec(static_cast<int>(number % 1'000), absl::kZeroPad3));
}

void CheckInteger(absl::string_view field, int64_t value, int64_t min, int64_t max,
                  Findings& findings) {
  if (value >= min && value <= max) return;
  findings.Add(field, "got ", value, ", expected an integer from ", min, " to ", max);
}

void CheckAtLeast(absl::string_view field, int64_t value, int64_t min, Findings& findings) {
  if (value >= min) return;
  findings.Add(field, "got ", value, ", expected an integer of at least ", min);
}

void CheckFinite(absl::string_view field, double value, Findings& findings) {
  if (std::isfinite(value) && value >= 0) return;
  findings.Add(field, "got ", value, ", expected a finite number of at least 0");
}

// Reports the first duplicate value.
template <typename Values, typename Format>
void CheckDistinct(absl::string_view field, const Values& values, Format format,
                   Findings& findings) {
  absl::flat_hash_set<typename Values::value_type> seen;
  for (const auto& value : values) {
    if (seen.insert(value).second) continue;
    findings.Add(field, format(value), " is given twice");
    return;
  }
}

template <typename Values>
void CheckLengths(absl::string_view field, const Values& values, int32_t max, Findings& findings) {
  for (const int32_t value : values) {
    if (value >= 1 && value <= max) continue;
    findings.Add(field, "got ", value, ", expected lengths from 1 to ", max);
    break;
  }
  CheckDistinct(
      field, values, [](int32_t value) { return absl::StrCat(value); }, findings);
}

void CheckName(const std::string& name, Findings& findings) {
  if (name.empty()) {
    findings.AddMissing("name", "required: the experiment's name");
    return;
  }
  bool valid = name.size() <= kMostName && name[0] != '-' && name[0] != '_';
  for (const char c : name) {
    valid &= absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-';
  }
  if (valid) return;
  findings.Add("name", "got \"", name, "\", expected at most ", kMostName,
               " characters of a-z, 0-9, \"_\" and \"-\", first a letter or "
               "digit");
}

void CheckLearningRates(const v1::ExperimentSpecification& specification, Findings& findings) {
  std::vector<double> valid;
  for (int i = 0; i < specification.learning_rates_size(); ++i) {
    const double rate = specification.learning_rates(i);
    if (std::isfinite(rate) && rate > 0) {
      valid.push_back(rate);
    } else {
      findings.Add(absl::StrCat("learning_rates[", i, "]"), "got ", rate,
                   ", expected a finite number above 0");
    }
  }
  CheckDistinct(
      "learning_rates", valid, [](double rate) { return catalogue::FormatValue(rate); }, findings);
}

void CheckSeeds(const v1::ExperimentSpecification& specification, Findings& findings) {
  const bool weights = specification.weight_seeds_size() > 0;
  const bool data = specification.data_seeds_size() > 0;
  if (specification.seeds_size() > 0 && (weights || data)) {
    findings.Add(
        "seeds",
        "cannot be combined with weight_seeds and data_seeds: set seeds, or the other two");
  } else if (weights != data) {
    findings.AddMissing(weights ? "data_seeds" : "weight_seeds",
                        absl::StrCat("required with ", weights ? "weight_seeds" : "data_seeds"));
  }
  const auto text = [](uint64_t seed) { return absl::StrCat(seed); };
  CheckDistinct("seeds", specification.seeds(), text, findings);
  CheckDistinct("weight_seeds", specification.weight_seeds(), text, findings);
  CheckDistinct("data_seeds", specification.data_seeds(), text, findings);
}

// Exactly one of epochs and steps may be set; epochs are converted to steps.
void CheckEpochs(const v1::Training& training, Findings& findings) {
  if (training.has_steps()) {
    findings.Add("training.epochs", "cannot be combined with training.steps: set one of them");
  }
  if (training.examples() == 0) {
    findings.Add("training.epochs", "epochs need a fixed data set: set training.examples");
  }
  if (training.epochs() < 1 || training.epochs() > kMostEpochs) {
    CheckInteger("training.epochs", training.epochs(), 1, kMostEpochs, findings);
  } else if (const int64_t steps = StepsPerEpoch(training);
             steps > kMostSteps / training.epochs()) {
    findings.Add("training.epochs", "got ", training.epochs(), " epochs of ", steps,
                 " steps; expected at most ", kMostSteps, " steps in total");
  }
}

void CheckExamples(const v1::Training& training, Findings& findings) {
  CheckInteger("training.examples", training.examples(), 0, kMostExamples, findings);
  if (training.examples() == 0) {
    constexpr char kNeedsExamples[] = "needs a data set; set training.examples";
    if (training.without_replacement())
      findings.Add("training.without_replacement", kNeedsExamples);
    if (training.has_data_set_seed()) findings.Add("training.data_set_seed", kNeedsExamples);
  }
  const int64_t lengths = int64_t{training.lengths().max()} - training.lengths().min() + 1;
  if (training.examples() > 0 && training.examples() < lengths) {
    findings.Add("training.examples", "got ", training.examples(),
                 ", expected at least one for each of ", lengths, " lengths (training.lengths)");
  }
}

void CheckTraining(const v1::Training& training, Findings& findings) {
  if (training.has_epochs()) {
    CheckEpochs(training, findings);
  } else if (training.has_steps()) {
    CheckInteger("training.steps", training.steps(), 1, kMostSteps, findings);
  } else {
    findings.AddMissing("training.steps",
                        "required without a protocol: the number of optimizer steps");
  }
  CheckInteger("training.batch_size", training.batch_size(), 1, 65'536, findings);
  CheckExamples(training, findings);
  const v1::LengthRange& lengths = training.lengths();
  CheckInteger("training.lengths.min", lengths.min(), 1, kMostLength, findings);
  CheckInteger("training.lengths.max", lengths.max(), 1, kMostLength, findings);
  if (lengths.min() > lengths.max() && lengths.max() >= 1) {
    findings.Add("training.lengths.min", "got ", lengths.min(),
                 ", expected at most training.lengths.max, ", lengths.max());
  }
  CheckFinite("training.clip_norm", training.clip_norm(), findings);
  if (training.has_report_every_steps()) {
    CheckAtLeast("training.report_every_steps", training.report_every_steps(), 1, findings);
  }
  CheckAtLeast("training.checkpoint_every_steps", training.checkpoint_every_steps(), 0, findings);
  CheckFinite("training.checkpoint_every_seconds", training.checkpoint_every_seconds(), findings);
  CheckOneOf("training.precision", "precision", training.precision(),
             {"float32", "float64", "bfloat16", "tf32"}, findings);
  CheckFinite("training.stop_after_seconds", training.stop_after_seconds(), findings);
  // Written so that NaN is rejected.
  if (!(training.stop_at_accuracy() >= 0 && training.stop_at_accuracy() <= 1)) {
    findings.Add("training.stop_at_accuracy", "got ", training.stop_at_accuracy(),
                 ", expected a number from 0 to 1");
  }
}

// Checks the optional analyses of the final evaluation: sequences with attention maps, embedding
// noise, and scored training examples.
void CheckAnalyses(const v1::Evaluation& evaluation, const v1::Training& training,
                   Findings& findings) {
  if (evaluation.has_attention_sequences()) {
    CheckInteger("evaluation.attention_sequences", evaluation.attention_sequences(), 1, 1'000,
                 findings);
    if (evaluation.attention_lengths().empty()) {
      findings.Add("evaluation.attention_sequences",
                   "needs lengths to record maps at; set evaluation.attention_lengths");
    }
  }
  CheckInteger("evaluation.answers", evaluation.answers(), 0, 1'000, findings);
  for (int i = 0; i < evaluation.embedding_noise_size(); ++i) {
    const double deviation = evaluation.embedding_noise(i);
    // Written so that NaN is rejected.
    if (deviation > 0 && deviation <= kMostNoise) continue;
    findings.Add(absl::StrCat("evaluation.embedding_noise[", i, "]"), "got ", deviation,
                 ", expected a standard deviation above 0, at most ", kMostNoise);
  }
  CheckDistinct(
      "evaluation.embedding_noise", evaluation.embedding_noise(),
      [](double deviation) { return catalogue::FormatValue(deviation); }, findings);
  if (evaluation.training_examples() > 0 && training.examples() == 0) {
    findings.Add("evaluation.training_examples",
                 "needs a data set to score examples of; set training.examples");
  } else {
    CheckInteger("evaluation.training_examples", evaluation.training_examples(), 0,
                 training.examples(), findings);
  }
}

// Says what is counted, because the value itself may be a number.
void CheckCount(const std::string& field, int count, const char* what, Findings& findings) {
  if (count >= 1 && count <= kMostAttentionLength) return;
  findings.Add(field, "got ", count, " ", what, ", expected 1 to ", kMostAttentionLength);
}

void CheckInput(const std::string& field, const v1::TokenSequence& input, Findings& findings) {
  if (!input.tokens().empty() + !input.numbers().empty() + !input.text().empty() > 1) {
    findings.Add(field,
                 "has more than one of tokens, numbers and text: give only what the task reads");
    return;
  }
  if (!input.text().empty()) {
    if (input.text().size() > kMostInputBytes) {
      findings.Add(field + ".text", "got ", input.text().size(), " bytes, expected at most ",
                   kMostInputBytes);
    }
    return;
  }
  if (input.numbers().empty()) {
    CheckCount(field + ".tokens", input.tokens_size(), "tokens", findings);
    return;
  }
  CheckCount(field + ".numbers", input.numbers_size(), "numbers", findings);
  for (const double number : input.numbers()) {
    if (std::isfinite(number)) continue;
    findings.Add(field + ".numbers", "got ", number, ", expected finite numbers");
    return;
  }
}

void CheckEvaluation(const v1::Evaluation& evaluation, Findings& findings) {
  if (evaluation.lengths_size() == 0) {
    findings.AddMissing("evaluation.lengths",
                        "required without a protocol: the lengths to evaluate, such as \"1..60\"");
  }
  CheckLengths("evaluation.lengths", evaluation.lengths(), kMostLength, findings);
  CheckInteger("evaluation.sequences", evaluation.sequences(), 1, 1'000'000, findings);
  CheckAtLeast("evaluation.every_steps", evaluation.every_steps(), 0, findings);
  CheckLengths("evaluation.interval_lengths", evaluation.interval_lengths(), kMostLength, findings);
  if (evaluation.has_interval_sequences()) {
    CheckInteger("evaluation.interval_sequences", evaluation.interval_sequences(), 1, 1'000'000,
                 findings);
  }
  CheckAtLeast("evaluation.seen_up_to", evaluation.seen_up_to(), 0, findings);
  if (!evaluation.select().empty()) {
    CheckOneOf("evaluation.select", "rule", evaluation.select(), {"seen", "unseen"}, findings);
  }
  CheckLengths("evaluation.attention_lengths", evaluation.attention_lengths(), kMostAttentionLength,
               findings);
  for (int i = 0; i < evaluation.attention_inputs_size(); ++i) {
    CheckInput(absl::StrCat("evaluation.attention_inputs[", i, "]"), evaluation.attention_inputs(i),
               findings);
  }
  const v1::ProjectionSettings& projection = evaluation.projection();
  if (projection.has_fitted_length()) {
    CheckInteger("evaluation.projection.fitted_length", projection.fitted_length(), 1,
                 kMostAttentionLength, findings);
  }
  CheckLengths("evaluation.projection.lengths", projection.lengths(), kMostAttentionLength,
               findings);
  if (projection.has_sequences()) {
    CheckInteger("evaluation.projection.sequences", projection.sequences(), 1, 1'000, findings);
  }
}

void CheckValidation(const v1::Evaluation& evaluation, const v1::Training& training,
                     Findings& findings) {
  if (!evaluation.has_validation()) return;
  const v1::Validation& validation = evaluation.validation();
  if (validation.lengths_size() == 0) {
    findings.AddMissing("evaluation.validation.lengths",
                        "required: the lengths by which to choose, such as \"1..20\"");
  }
  if (validation.has_sequences()) {
    CheckInteger("evaluation.validation.sequences", validation.sequences(), 1, 1'000'000, findings);
  }
  // Longer sequences are checked nowhere else.
  int32_t longest = training.lengths().max();
  for (const int32_t length : evaluation.lengths()) longest = std::max(longest, length);
  CheckLengths("evaluation.validation.lengths", validation.lengths(), longest, findings);
}

// Returns true if evaluations of these lengths have scores for evaluation.select.
bool CanChoose(const v1::Evaluation& evaluation,
               const google::protobuf::RepeatedField<int32_t>& lengths) {
  return evaluation.select() == "unseen" ||
         absl::c_any_of(lengths, [&](int32_t length) { return length <= evaluation.seen_up_to(); });
}

}  // namespace

void CheckOneOf(absl::string_view field, absl::string_view what, const std::string& value,
                const std::vector<std::string>& accepted, Findings& findings) {
  if (absl::c_linear_search(accepted, value)) return;
  findings.Add(field, "unknown ", what, " \"", value, "\"", catalogue::Suggestion(value, accepted));
}

void CheckFields(const v1::ExperimentSpecification& specification, Findings& findings) {
  CheckName(specification.name(), findings);
  if (specification.description().size() > kMostDescription) {
    findings.Add("description", "got ", specification.description().size(),
                 " bytes, expected at most ", kMostDescription);
  }
  if (!platform::IsPrintable(specification.description())) {
    findings.Add("description", "has control characters; expected text, lines and tabs");
  }
  CheckInteger("priority", specification.priority(), -1000, 1000, findings);
  if (!specification.retention().empty() && !ParseRetention(specification.retention())) {
    findings.Add("retention", "got \"", specification.retention(),
                 "\", expected a time such as 90d or 12h, or forever");
  }
  CheckLearningRates(specification, findings);
  CheckSeeds(specification, findings);
  CheckTraining(specification.training(), findings);
  CheckEvaluation(specification.evaluation(), findings);
  CheckAnalyses(specification.evaluation(), specification.training(), findings);
  CheckValidation(specification.evaluation(), specification.training(), findings);
  if (specification.training().stop_at_accuracy() > 0 &&
      specification.evaluation().every_steps() == 0) {
    findings.Add("training.stop_at_accuracy",
                 "needs evaluations during training; set evaluation.every_steps");
  }
  if (!specification.evaluated_trial().empty()) {
    findings.Add("evaluated_trial",
                 "only the server sets this; use `lengthwise evaluate TRIAL` to evaluate a trial");
  }
}

void CheckStop(const v1::ExperimentSpecification& specification, Findings& findings) {
  const v1::Evaluation& evaluation = specification.evaluation();
  if (!(specification.training().stop_at_accuracy() > 0) || evaluation.every_steps() == 0 ||
      CanChoose(evaluation, evaluation.interval_lengths())) {
    return;
  }
  findings.Add("training.stop_at_accuracy",
               "needs a seen length in evaluation.interval_lengths; add one, or set "
               "evaluation.select to unseen");
}

std::string ChoiceWarning(const v1::ExperimentSpecification& specification) {
  const v1::Evaluation& evaluation = specification.evaluation();
  const int seeds = specification.seeds_size() +
                    specification.weight_seeds_size() * specification.data_seeds_size();
  if (specification.learning_rates_size() * seeds < 2 || evaluation.has_validation() ||
      CanChoose(evaluation, evaluation.lengths())) {
    return "";
  }
  return "no evaluated length counts as seen, so nothing chooses between learning rates or seeds; "
         "give evaluation.validation or a seen length, or set evaluation.select to unseen";
}

namespace {

absl::uint128 BytesOf(const google::protobuf::RepeatedPtrField<v1::Component>& components) {
  absl::uint128 bytes = 0;
  for (const v1::Component& component : components) bytes += component.ByteSizeLong();
  return bytes;
}

}  // namespace

void CheckGridSize(const v1::ExperimentSpecification& specification, int64_t max_trials,
                   int64_t max_bytes, Findings& findings) {
  struct Axis {
    absl::string_view field;
    int size;
    bool required;
  };
  const Axis axes[] = {
      {"tasks", specification.tasks_size(), true},
      {"networks", specification.networks_size(), true},
      {"encodings", specification.encodings_size(), true},
      {"learning_rates", specification.learning_rates_size(), true},
      {"seeds", specification.seeds_size(), false},
      {"weight_seeds", specification.weight_seeds_size(), false},
      {"data_seeds", specification.data_seeds_size(), false},
  };
  // Saturates instead of overflowing. The bound exceeds every limit, and an axis has fewer than
  // 2^31 values, so a saturated product times an axis still fits.
  const absl::uint128 saturated = absl::uint128(1) << 90;
  absl::uint128 product = 1;
  std::vector<std::string> factors;
  for (const Axis& axis : axes) {
    if (axis.size == 0) {
      if (axis.required) {
        findings.AddMissing(std::string(axis.field), "required: at least one value");
      }
      continue;
    }
    if (product < saturated) product *= static_cast<uint32_t>(axis.size);
    if (axis.size > 1) factors.push_back(absl::StrCat(Grouped(axis.size), " ", axis.field));
  }
  if (product > absl::uint128(static_cast<uint64_t>(max_trials))) {
    findings.Add("trials", absl::StrJoin(factors, " x "), " = ",
                 product < saturated ? Grouped(product) : "more than 10^27", " trials; at most ",
                 Grouped(max_trials), ": give the grid fewer values or submit it in parts");
    return;
  }
  // A pack has a copy of training and evaluation, and one component of each of the three axes. So
  // few factors cannot overflow: there are at most `max_trials` packs.
  const absl::uint128 tasks = specification.tasks_size(), networks = specification.networks_size(),
                      encodings = specification.encodings_size();
  const absl::uint128 packs = tasks * networks * encodings;
  const absl::uint128 copied =
      specification.training().ByteSizeLong() + specification.evaluation().ByteSizeLong();
  const absl::uint128 bytes = packs * copied +
                              BytesOf(specification.tasks()) * networks * encodings +
                              BytesOf(specification.networks()) * tasks * encodings +
                              BytesOf(specification.encodings()) * tasks * networks;
  if (bytes <= absl::uint128(static_cast<uint64_t>(max_bytes))) return;
  findings.Add("trials", Grouped(packs), " tasks, networks and encodings with ", Grouped(copied),
               " bytes of training and evaluation each = ", Grouped(bytes), " bytes; at most ",
               Grouped(max_bytes),
               " (the server's --max_grid_bytes): evaluate fewer lengths, give the "
               "grid fewer values or submit it in parts");
}

}  // namespace lengthwise::specification
