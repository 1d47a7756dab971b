// What a PackRun records of a model beside its accuracies: scores of single sequences, attention
// maps and projections.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/training/pack_run.h"

namespace lengthwise::worker::training {
namespace {

// An event must fit into a message of the API; these are the largest fields.
constexpr int64_t kMaxBytes = int64_t{3} << 20;

// Bytes of one layer of the attention map of a sequence of `tokens` tokens, and of the projection
// of sequences of `length`.
int64_t LayerBytes(const Blueprint& blueprint, int64_t tokens) {
  return static_cast<int64_t>(sizeof(float)) * blueprint.size.heads * tokens * tokens;
}
int64_t ProjectionBytes(const Blueprint& blueprint, int64_t length) {
  return static_cast<int64_t>(sizeof(float)) * 2 * (blueprint.size.blocks + 1) *
         blueprint.evaluation.projection().sequences() * blueprint.source().InputTokens(length);
}

std::string TooLarge(int64_t bytes) {
  return absl::StrCat("it has ", bytes, " bytes and ", kMaxBytes, " fit into an event");
}

// As few parts as the limit allows, of whole layers, each of which fits.
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

void PackRun::EmitSequenceScores(Member& member, std::vector<v1::SequenceScores> scores) {
  for (v1::SequenceScores& of_length : scores) {
    const auto bytes = static_cast<int64_t>(of_length.ByteSizeLong());
    if (bytes > kMaxBytes) {
      Warn(member, absl::StrCat("no scores of single sequences at length ", of_length.length(),
                                ": ", TooLarge(bytes), "; ask for fewer sequences"));
      continue;
    }
    v1::Event event;
    *event.mutable_sequence_scores() = std::move(of_length);
    member.reporter.Emit(member.step, std::move(event));
  }
}

void PackRun::EmitMap(Member& member, v1::AttentionMap map) {
  for (v1::AttentionMap& part : InParts(std::move(map))) {
    v1::Event event;
    *event.mutable_attention_map() = std::move(part);
    member.reporter.Emit(member.step, std::move(event));
  }
}

void PackRun::EmitAttention(int64_t index) {
  Member& seen = member(index);
  for (const int32_t length : blueprint_.evaluation.attention_lengths()) {
    const int64_t bytes = LayerBytes(blueprint_, blueprint_.source().SequenceTokens(length));
    if (bytes > kMaxBytes) {
      Warn(seen,
           absl::StrCat("no attention map at length ", length, ": of a layer ", TooLarge(bytes)));
      continue;
    }
    // Trials of before there could be several say nothing of it.
    const int64_t sequences = blueprint_.source().EvaluationSequences(
        length, std::max(1, blueprint_.evaluation.attention_sequences()));
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      EmitMap(seen, model_->CaptureAttention(index, length, sequence));
    }
  }
  for (int number = 1; number <= blueprint_.evaluation.attention_inputs_size(); ++number) {
    EmitAttentionOfInput(index, number);
  }
}

void PackRun::EmitAttentionOfInput(int64_t index, int32_t number) {
  Member& seen = member(index);
  const v1::TokenSequence& input = blueprint_.evaluation.attention_inputs(number - 1);
  const auto refuse = [&](absl::string_view why) {
    Warn(seen, absl::StrCat("no attention map of input ", number, ": ", why));
  };
  const absl::StatusOr<GivenSequence> given = blueprint_.source().Given(input);
  if (!given.ok()) return refuse(given.status().message());
  const size_t tokens = std::max(given->tokens.size(), given->numbers.size());
  const int64_t bytes = LayerBytes(blueprint_, static_cast<int64_t>(tokens));
  if (bytes > kMaxBytes) return refuse(absl::StrCat("of a layer ", TooLarge(bytes)));
  v1::AttentionMap map = model_->CaptureAttention(index, *given);
  map.set_input_number(number);
  EmitMap(seen, std::move(map));
}

void PackRun::EmitProjections(int64_t index) {
  const v1::ProjectionSettings& settings = blueprint_.evaluation.projection();
  if (settings.lengths().empty()) return;
  Member& seen = member(index);
  const auto fits = [&](absl::string_view what, int32_t length) {
    const int64_t bytes = ProjectionBytes(blueprint_, length);
    if (bytes <= kMaxBytes) return true;
    Warn(seen, absl::StrCat(what, " length ", length, ": ", TooLarge(bytes),
                            "; ask for fewer sequences"));
    return false;
  };
  // What is fitted becomes no event, but the limit bounds the memory that it takes.
  if (!fits("no projections with components of", settings.fitted_length())) return;
  std::vector<int32_t> lengths;
  for (const int32_t length : settings.lengths()) {
    if (fits("no projection of", length)) lengths.push_back(length);
  }
  for (v1::Projection& projection :
       model_->Project(index, settings.fitted_length(), settings.sequences(), lengths)) {
    v1::Event event;
    *event.mutable_projection() = std::move(projection);
    seen.reporter.Emit(seen.step, std::move(event));
  }
}

void PackRun::Warn(Member& member, absl::string_view text) {
  v1::Event event;
  event.mutable_log_line()->set_severity(v1::LogLine::WARNING);
  event.mutable_log_line()->set_text(std::string(text));
  member.reporter.Emit(member.step, std::move(event));
}

}  // namespace lengthwise::worker::training
