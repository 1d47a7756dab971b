#include "worker/testing/tiny_trials.h"

#include <string>

#include "catalogue/entry.h"
#include "models/encodings/testing/test_formula.h"

namespace lengthwise::worker {

v1::TrialSpecification TinyTrial(uint64_t seed) {
  v1::TrialSpecification trial;
  trial.mutable_task()->set_name("reverse_string");
  trial.mutable_network()->set_name("encoder");
  auto& network = *trial.mutable_network()->mutable_parameters();
  network["blocks"].set_number_value(1);
  network["d_model"].set_number_value(16);
  network["heads"].set_number_value(2);
  trial.mutable_encoding()->set_name("sin_cos");
  auto& encoding = *trial.mutable_encoding()->mutable_parameters();
  encoding["randomized"].set_bool_value(true);
  encoding["max_position"].set_number_value(64);
  trial.set_learning_rate(1e-3);
  trial.set_weight_seed(seed);
  trial.set_data_seed(seed);

  v1::Training& training = *trial.mutable_training();
  training.set_steps(40);
  training.set_batch_size(8);
  training.mutable_lengths()->set_min(1);
  training.mutable_lengths()->set_max(6);
  training.mutable_optimizer()->set_name("adam");
  training.mutable_schedule()->set_name("constant");
  training.set_clip_norm(1);
  training.set_schedule_seed(0);
  training.set_report_every_steps(3);
  training.set_checkpoint_every_steps(10);
  training.set_precision("float32");

  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  for (const int32_t length : {3, 6, 9}) evaluation.add_lengths(length);
  evaluation.set_sequences(16);
  evaluation.set_every_steps(15);
  for (const int32_t length : {3, 9}) evaluation.add_interval_lengths(length);
  evaluation.set_interval_sequences(4);
  evaluation.set_seen_up_to(6);
  evaluation.add_attention_lengths(4);
  evaluation.set_seed(0);
  trial.set_keep("weights");
  return trial;
}

v1::TrialSpecification TinyTextTrial(uint64_t seed) {
  v1::TrialSpecification trial = TinyTrial(seed);
  trial.mutable_task()->set_name("decimal_addition");
  trial.mutable_network()->set_name("causal_decoder");
  v1::Training& training = *trial.mutable_training();
  training.set_batch_size(4);
  training.mutable_lengths()->set_max(3);
  training.mutable_packing()->set_tokens(64);
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  evaluation.clear_lengths();
  evaluation.clear_interval_lengths();
  for (const int32_t digits : {2, 4}) {
    evaluation.add_lengths(digits);
    evaluation.add_interval_lengths(digits);
  }
  evaluation.set_seen_up_to(3);
  evaluation.clear_attention_lengths();
  evaluation.add_attention_lengths(2);
  return trial;
}

void SetEncoding(const std::string& name, v1::TrialSpecification& trial) {
  trial.mutable_encoding()->set_name(name);
  catalogue::Parameters formulas;
  models::GiveFormula(name, formulas);
  for (const auto& [place, text] : formulas.values()) {
    (*trial.mutable_encoding()->mutable_parameters())[place].set_string_value(
        catalogue::FormatValue(text));
  }
}

v1::TokenSequence TokensOf(absl::Span<const int32_t> tokens) {
  v1::TokenSequence input;
  input.mutable_tokens()->Add(tokens.begin(), tokens.end());
  return input;
}

v1::TokenSequence NumbersOf(absl::Span<const double> numbers) {
  v1::TokenSequence input;
  input.mutable_numbers()->Add(numbers.begin(), numbers.end());
  return input;
}

v1::Lease LeaseOf(const std::vector<v1::TrialSpecification>& specifications) {
  v1::Lease lease;
  lease.set_lease_id("test-lease");
  lease.set_fencing_token(1);
  for (size_t i = 0; i < specifications.size(); ++i) {
    v1::LeasedTrial& trial = *lease.add_trials();
    trial.set_trial("experiments/test/trials/" + std::to_string(i));
    *trial.mutable_specification() = specifications[i];
    trial.set_attempt(1);
  }
  return lease;
}

}  // namespace lengthwise::worker
