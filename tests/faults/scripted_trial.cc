#include "tests/faults/scripted_trial.h"

#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lengthwise::faults {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Returns a number in [0, 1) with 20 bits: exact in float and double.
float Fraction(uint64_t value) { return static_cast<float>(value >> 44) / (1 << 20); }

uint64_t InitialState(const v1::TrialSpecification& specification) {
  uint64_t rate = 0;
  const double learning_rate = specification.learning_rate();
  std::memcpy(&rate, &learning_rate, sizeof(rate));
  return Mix(Mix(Mix(rate) ^ specification.weight_seed()) ^ specification.data_seed());
}

bool IsDue(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

}  // namespace

ScriptedTrial::ScriptedTrial(const v1::TrialSpecification& specification)
    : specification_(specification), state_(InitialState(specification)) {}

void ScriptedTrial::Advance(v1::TrainingPoints& points) {
  state_ = Mix(state_ ^ static_cast<uint64_t>(++step_));
  if (!IsReportDue()) return;
  points.add_steps(step_);
  points.add_losses(Fraction(state_));
  points.add_accuracies(Fraction(Mix(state_)));
  points.add_gradient_norms(Fraction(Mix(state_ + 1)));
  points.add_lengths(static_cast<int32_t>(1 + state_ % 10));
}

v1::LengthAccuracies ScriptedTrial::Evaluate(bool final) const {
  v1::LengthAccuracies accuracies;
  accuracies.set_final(final);
  accuracies.set_sequences(specification_.evaluation().sequences());
  for (const int32_t length : specification_.evaluation().lengths()) {
    accuracies.add_lengths(length);
    accuracies.add_accuracies(Fraction(Mix(state_ ^ static_cast<uint64_t>(length) << 32)));
    accuracies.add_losses(Fraction(Mix(state_ ^ static_cast<uint64_t>(length) << 40)));
  }
  return accuracies;
}

bool ScriptedTrial::IsReportDue() const {
  return IsDue(step_, specification_.training().report_every_steps()) || step_ == steps();
}

bool ScriptedTrial::IsEvaluationDue() const {
  return IsDue(step_, specification_.evaluation().every_steps());
}

bool ScriptedTrial::IsCheckpointDue() const {
  return IsDue(step_, specification_.training().checkpoint_every_steps()) || step_ == steps();
}

std::string ScriptedTrial::Checkpoint() const {
  const std::string line =
      absl::StrCat(step_, " ", state_, " ", InitialState(specification_), "\n");
  std::string bytes;
  while (bytes.size() < 2000) bytes += line;
  return bytes;
}

bool ScriptedTrial::Resume(absl::string_view checkpoint) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(checkpoint.substr(0, checkpoint.find('\n')), ' ');
  ScriptedTrial resumed(specification_);
  uint64_t owner = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[0], &resumed.step_) ||
      !absl::SimpleAtoi(words[1], &resumed.state_) || !absl::SimpleAtoi(words[2], &owner) ||
      owner != InitialState(specification_) || resumed.Checkpoint() != checkpoint) {
    return false;
  }
  step_ = resumed.step_;
  state_ = resumed.state_;
  return true;
}

}  // namespace lengthwise::faults
