#include "worker/training/pack_evaluation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/networks/catalogue.h"
#include "worker/training/pace.h"

namespace lengthwise::worker::training {
namespace {

// Returns false, and adds nothing, if no output of the length counts. Files of examples that an
// older release read have such lengths (tasks::examples::Options::reading); their accuracy is
// unknown, not 0.
bool AddScore(int32_t length, const evaluation::LengthScore& score,
              v1::LengthAccuracies& accuracies) {
  if (std::isnan(score.accuracy)) return false;
  const auto sequences = static_cast<int32_t>(score.sequences);
  accuracies.set_sequences(std::max(accuracies.sequences(), sequences));
  accuracies.add_sequence_counts(sequences);
  accuracies.add_lengths(length);
  accuracies.add_accuracies(score.accuracy);
  accuracies.add_losses(score.loss);
  for (const auto& [name, value] : score.metrics) {
    auto& metrics = *accuracies.mutable_metrics();
    auto metric = std::find_if(metrics.begin(), metrics.end(),
                               [&](const auto& known) { return known.name() == name; });
    if (metric == metrics.end()) {
      metrics.Add()->set_name(name);
      metric = metrics.end() - 1;
    }
    metric->add_values(value);
  }
  return true;
}

v1::SequenceScores EachSequence(int32_t length, const evaluation::LengthScore& score) {
  v1::SequenceScores scores;
  scores.set_length(length);
  scores.mutable_accuracies()->Add(score.each_accuracy.begin(), score.each_accuracy.end());
  scores.mutable_losses()->Add(score.each_loss.begin(), score.each_loss.end());
  scores.mutable_wrong_answers()->Add(score.wrong_answers.begin(), score.wrong_answers.end());
  return scores;
}

// Limit of the largest field of an event, so that the event fits in an API message.
constexpr int64_t kMaxBytes = int64_t{3} << 20;
constexpr char kAskForFewer[] = "; ask for fewer sequences";

// Bytes of one layer of a sequence's attention map, and of a projection at `length`.
int64_t LayerBytes(const Blueprint& blueprint, int64_t tokens) {
  return static_cast<int64_t>(sizeof(float)) * blueprint.size.heads * tokens * tokens;
}
int64_t ProjectionBytes(const Blueprint& blueprint, int64_t length) {
  const int64_t layers =
      blueprint.size.blocks *
      models::Loops(blueprint.network.parameters).Of(blueprint.source().InputTokens(length));
  return static_cast<int64_t>(sizeof(float)) * 2 * (layers + 1) *
         blueprint.evaluation.projection().sequences() * blueprint.source().InputTokens(length);
}

// Splits the map into as few parts of whole layers as the limit allows. Each layer must fit.
std::vector<v1::AttentionMap> InParts(v1::AttentionMap map) {
  const int64_t layer_bytes = static_cast<int64_t>(map.probabilities().size()) / map.layers();
  const int32_t layers_a_part =
      static_cast<int32_t>(std::clamp<int64_t>(kMaxBytes / layer_bytes, 1, map.layers()));
  std::vector<v1::AttentionMap> parts;
  const std::string probabilities = std::move(*map.mutable_probabilities());
  const int32_t layers = map.layers();
  for (int32_t first = 0; first < layers; first += layers_a_part) {
    v1::AttentionMap& part = parts.emplace_back(map);
    part.set_first_layer(first);
    part.set_layers(std::min(layers_a_part, layers - first));
    part.set_probabilities(probabilities.substr(static_cast<size_t>(first * layer_bytes),
                                                static_cast<size_t>(part.layers() * layer_bytes)));
  }
  return parts;
}

}  // namespace

std::optional<std::vector<v1::LengthAccuracies>> PackEvaluation::Interval(
    MemberRange range, const KeepGoing& keep_going) const {
  const v1::Evaluation& evaluation = blueprint_.evaluation;
  std::vector<v1::LengthAccuracies> results(static_cast<size_t>(range.count));
  for (const int32_t length : evaluation.interval_lengths()) {
    const auto scores = model_.Score(range, length, evaluation.interval_sequences(), keep_going,
                                     {.validation = true});
    if (!scores.has_value()) return std::nullopt;
    for (size_t i = 0; i < scores->size(); ++i) AddScore(length, (*scores)[i], results[i]);
  }
  return results;
}

std::optional<std::vector<PackEvaluation::Final>> PackEvaluation::Finally(
    MemberRange range, const KeepGoing& keep_going, const Progress& progress) const {
  const v1::Evaluation& evaluation = blueprint_.evaluation;
  std::vector<Final> results(static_cast<size_t>(range.count));
  const double all_work = EvaluationWork(blueprint_);
  double work = 0;
  const bool rounding = blueprint_.HasWholeNumbers();
  for (const int32_t length : evaluation.lengths()) {
    const auto scores = model_.Score(range, length, evaluation.sequences(), keep_going,
                                     {.each_sequence = evaluation.sequence_scores(),
                                      .rounding = rounding,
                                      .answers = evaluation.answers()});
    if (!scores.has_value()) return std::nullopt;
    for (size_t i = 0; i < scores->size(); ++i) {
      const auto& score = (*scores)[i];
      if (!AddScore(length, score, results[i].accuracies)) continue;
      if (evaluation.sequence_scores()) {
        results[i].sequence_scores.push_back(EachSequence(length, score));
      }
      if (score.errors.has_value()) results[i].answer_errors.push_back(*score.errors);
      results[i].answers.insert(results[i].answers.end(), score.answers.begin(),
                                score.answers.end());
    }
    work += EvaluationWork(blueprint_, length);
    progress(results.front().accuracies.lengths_size(), work / all_work);
  }
  if (!EvaluateUnderNoise(range, keep_going, results)) return std::nullopt;
  if (!EvaluateValidation(range, keep_going, results)) return std::nullopt;
  if (!EvaluateDataSets(range, keep_going, results)) return std::nullopt;
  for (Final& result : results) result.accuracies.set_final(true);
  return results;
}

bool PackEvaluation::EvaluateUnderNoise(MemberRange range, const KeepGoing& keep_going,
                                        std::vector<Final>& results) const {
  const v1::Evaluation& evaluation = blueprint_.evaluation;
  // Those with a score. All members have the same.
  const auto& lengths = results.front().accuracies.lengths();
  if (lengths.empty()) return true;
  for (const double deviation : evaluation.embedding_noise()) {
    std::vector<double> accuracies(results.size()), losses(results.size());
    for (const int32_t length : lengths) {
      const auto scores = model_.Score(range, length, evaluation.sequences(), keep_going,
                                       {.embedding_noise = deviation});
      if (!scores.has_value()) return false;
      for (size_t i = 0; i < scores->size(); ++i) {
        accuracies[i] += (*scores)[i].accuracy / lengths.size();
        losses[i] += (*scores)[i].loss / lengths.size();
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].noise_accuracies.add_deviations(deviation);
      results[i].noise_accuracies.add_accuracies(accuracies[i]);
      results[i].noise_accuracies.add_losses(losses[i]);
    }
  }
  return true;
}

bool PackEvaluation::EvaluateValidation(MemberRange range, const KeepGoing& keep_going,
                                        std::vector<Final>& results) const {
  const v1::Validation& validation = blueprint_.evaluation.validation();
  for (const int32_t length : validation.lengths()) {
    const auto scores = model_.Score(range, length, validation.sequences(), keep_going,
                                     {.validation = true, .held_out = true});
    if (!scores.has_value()) return false;
    for (size_t i = 0; i < scores->size(); ++i) {
      v1::LengthAccuracies& mean = results[i].accuracies;
      const double share = 1.0 / validation.lengths_size();
      mean.set_validation_accuracy(mean.validation_accuracy() + share * (*scores)[i].accuracy);
      mean.set_validation_loss(mean.validation_loss() + share * (*scores)[i].loss);
    }
  }
  return true;
}

bool PackEvaluation::EvaluateDataSets(MemberRange range, const KeepGoing& keep_going,
                                      std::vector<Final>& results) const {
  const int64_t examples = blueprint_.evaluation.training_examples();
  if (examples == 0) return true;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto accuracy =
        model_.TrainingAccuracy(range.first + static_cast<int64_t>(i), examples, keep_going);
    if (!accuracy.has_value()) return false;
    results[i].accuracies.set_training_accuracy(*accuracy);
  }
  return true;
}

bool PackEvaluation::Emit(int64_t member, int64_t step, Final result, TrialReporter& reporter,
                          const KeepGoing& keep_going) const {
  const Recipient to = {member, step, reporter};
  to.Send(&v1::Event::mutable_length_accuracies, std::move(result.accuracies));
  for (v1::SequenceScores& scores : result.sequence_scores) {
    if (to.Fits(static_cast<int64_t>(scores.ByteSizeLong()),
                absl::StrCat("no scores of single sequences at length ", scores.length(), ":"),
                kAskForFewer)) {
      to.Send(&v1::Event::mutable_sequence_scores, std::move(scores));
    }
  }
  if (result.noise_accuracies.deviations_size() > 0) {
    to.Send(&v1::Event::mutable_noise_accuracies, std::move(result.noise_accuracies));
  }
  for (v1::AnswerErrors& errors : result.answer_errors) {
    to.Send(&v1::Event::mutable_answer_errors, std::move(errors));
  }
  for (v1::Answer& answer : result.answers) {
    to.Send(&v1::Event::mutable_answer, std::move(answer));
  }
  if (!EmitAttention(to, keep_going)) return false;
  if (blueprint_.evaluation.projection().lengths().empty()) return true;
  if (!keep_going()) return false;
  EmitProjections(to);
  return true;
}

void PackEvaluation::Recipient::Warn(absl::string_view text) const {
  reporter.Log(step, v1::LogLine::WARNING, text);
}

bool PackEvaluation::Recipient::Fits(int64_t bytes, absl::string_view what,
                                     absl::string_view advice) const {
  if (bytes <= kMaxBytes) return true;
  Warn(absl::StrCat(what, " it has ", bytes, " bytes; at most ", kMaxBytes, " fit in an event",
                    advice));
  return false;
}

void PackEvaluation::EmitMap(const Recipient& to, v1::AttentionMap map) {
  if (map.layers() == 0) {
    to.Warn("no attention map: this network keeps none");
    return;
  }
  // A user's module may have more heads than the blueprint says.
  const auto bytes = static_cast<int64_t>(map.probabilities().size()) / map.layers();
  if (!to.Fits(bytes, "no attention map: for one layer")) return;
  for (v1::AttentionMap& part : InParts(std::move(map))) {
    to.Send(&v1::Event::mutable_attention_map, std::move(part));
  }
}

bool PackEvaluation::EmitAttention(const Recipient& to, const KeepGoing& keep_going) const {
  for (const int32_t length : blueprint_.evaluation.attention_lengths()) {
    const int64_t bytes = LayerBytes(blueprint_, blueprint_.source().SequenceTokens(length));
    if (!to.Fits(bytes, absl::StrCat("no attention map at length ", length, ": for one layer"))) {
      continue;
    }
    // 0 in specifications from before attention_sequences existed; they mean one sequence.
    const int64_t sequences = blueprint_.source().EvaluationSequences(
        length, std::max(1, blueprint_.evaluation.attention_sequences()));
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      if (!keep_going()) return false;
      EmitMap(to, model_.CaptureAttention(to.member, length, sequence));
    }
  }
  for (int number = 1; number <= blueprint_.evaluation.attention_inputs_size(); ++number) {
    if (!keep_going()) return false;
    EmitOfInput(to, number);
  }
  return true;
}

void PackEvaluation::EmitOfInput(const Recipient& to, int32_t number) const {
  const v1::TokenSequence& input = blueprint_.evaluation.attention_inputs(number - 1);
  const absl::StatusOr<data::GivenSequence> given = blueprint_.source().Given(input);
  if (!given.ok()) {
    to.Warn(absl::StrCat("no answer to input ", number, ": ", given.status().message()));
    return;
  }
  v1::Answer answer = model_.Predict(to.member, *given);
  answer.set_input_number(number);
  to.Send(&v1::Event::mutable_answer, std::move(answer));
  // A text's answer has tokens of its own.
  const auto tokens =
      blueprint_.text != nullptr
          ? blueprint_.source().SequenceTokens(given->length)
          : static_cast<int64_t>(std::max(given->tokens.size(), given->numbers.size()));
  if (!to.Fits(LayerBytes(blueprint_, tokens),
               absl::StrCat("no attention map of input ", number, ": for one layer"))) {
    return;
  }
  v1::AttentionMap map = model_.CaptureAttention(to.member, *given);
  map.set_input_number(number);
  EmitMap(to, std::move(map));
}

void PackEvaluation::EmitProjections(const Recipient& to) const {
  const v1::ProjectionSettings& settings = blueprint_.evaluation.projection();
  const auto fits = [&](absl::string_view what, int32_t length) {
    return to.Fits(ProjectionBytes(blueprint_, length), absl::StrCat(what, " length ", length, ":"),
                   kAskForFewer);
  };
  // The fitted activations become no event, but the limit also bounds their memory.
  if (!fits("no projections with components of", settings.fitted_length())) return;
  std::vector<int32_t> lengths;
  for (const int32_t length : settings.lengths()) {
    if (fits("no projection of", length)) lengths.push_back(length);
  }
  for (v1::Projection& projection :
       model_.Project(to.member, settings.fitted_length(), settings.sequences(), lengths)) {
    to.Send(&v1::Event::mutable_projection, std::move(projection));
  }
}

}  // namespace lengthwise::worker::training
