#include "worker/evaluation/language_evaluator.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "ATen/core/Reduction.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/nll_loss.h"
#include "ATen/ops/zeros.h"
#include "c10/core/GradMode.h"
#include "random/stream.h"
#include "worker/data/batch_tensors.h"
#include "worker/evaluation/answer_tally.h"
#include "worker/evaluation/evaluator.h"

namespace lengthwise::worker::evaluation {
namespace {

using data::TextPass;

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets, int64_t reduction) {
  const at::ScalarType type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::nll_loss(at::log_softmax(logits.select(0, 0), -1, type), targets, {}, reduction,
                      tasks::kNoTarget);
}

}  // namespace

models::ExampleGroups ToExampleGroups(const TextPass& pass, at::Device device) {
  models::ExampleGroups groups;
  groups.tokens =
      data::ToDevice(pass.tokens, {1, static_cast<int64_t>(pass.tokens.size())}, at::kLong, device);
  for (const TextPass::Group& group : pass.groups) {
    groups.groups.push_back(
        {.examples = group.examples, .length = group.length, .prompt = group.prompt});
  }
  return groups;
}

at::Tensor TargetsOf(const TextPass& pass, at::Device device) {
  return data::ToDevice(pass.targets, {static_cast<int64_t>(pass.targets.size())}, at::kLong,
                        device);
}

at::Tensor SumCrossEntropy(const at::Tensor& logits, const at::Tensor& targets) {
  return CrossEntropy(logits, targets, at::Reduction::Sum);
}

std::vector<float> MeanCrossEntropies(const TextPass& pass, const at::Tensor& logits,
                                      const at::Tensor& targets) {
  const at::Tensor losses =  // 0 where there is no target
      CrossEntropy(logits, targets, at::Reduction::None).to(at::kCPU, at::kDouble).contiguous();
  std::vector<float> means;
  const double* loss = losses.const_data_ptr<double>();
  auto target = pass.targets.begin();
  for (const TextPass::Group& group : pass.groups) {
    for (int64_t i = 0; i < group.examples; ++i) {
      const auto counted =
          group.length - std::count(target, target + group.length, tasks::kNoTarget);
      means.push_back(static_cast<float>(std::accumulate(loss, loss + group.length, 0.0) /
                                         static_cast<double>(std::max<int64_t>(1, counted))));
      loss += group.length;
      target += group.length;
    }
  }
  return means;
}

at::Tensor LanguageEvaluator::Positions(int64_t size, at::Device device) const {
  const int64_t tokens = text_.SequenceTokens(size);
  return data::ToDevice(positions_.DrawBatch(options_.seed, random::Purpose::kEvaluationPositions,
                                             static_cast<uint64_t>(size), tokens),
                        {1, positions_.draws(), tokens}, at::kDouble, device);
}

std::vector<double> LanguageEvaluator::OwnPositions(int64_t size, const Asked& asked,
                                                    absl::Span<const int32_t> tokens) const {
  constexpr auto kPurpose = random::Purpose::kEvaluationPositions;
  const auto step = static_cast<uint64_t>(size);
  if (positions_.from_data()) {
    return positions_.WithOffset(text_.task().Ids(*asked.question, tokens), options_.seed, kPurpose,
                                 step);
  }
  std::vector<double> drawn = positions_.DrawRows(options_.seed, kPurpose, step, asked.number,
                                                  /*rows=*/1, text_.SequenceTokens(size));
  drawn.resize(tokens.size());
  return drawn;
}

at::Tensor LanguageEvaluator::PositionsOfPass(int64_t size, const TextPass& pass,
                                              absl::Span<const tasks::TextExample> questions,
                                              int64_t first, at::Device device,
                                              models::ExampleGroups& groups) const {
  if (!positions_.each()) return Positions(size, device);
  groups.own_positions = true;
  std::vector<double> all;
  auto piece = pass.pieces.begin();
  for (models::ExampleGroups::Group& group : groups.groups) {
    group.first_position = static_cast<int64_t>(all.size());
    for (int64_t i = 0; i < group.examples; ++i, ++piece) {
      const std::vector<double> own =
          OwnPositions(size, {&questions[*piece], first + static_cast<int64_t>(*piece)},
                       questions[*piece].tokens);
      all.insert(all.end(), own.begin(), own.end());
    }
  }
  return data::ToDevice(all, {1, 1, static_cast<int64_t>(all.size())}, at::kDouble, device);
}

std::optional<std::vector<std::vector<int32_t>>> LanguageEvaluator::Answer(
    const models::ParameterSet& parameters, int64_t size,
    absl::Span<const tasks::TextExample> questions, const std::function<bool()>& keep_going,
    int64_t first) const {
  const c10::NoGradGuard no_gradients;
  std::map<size_t, std::vector<size_t>> by_prompt;
  for (size_t i = 0; i < questions.size(); ++i) by_prompt[questions[i].prompt].push_back(i);
  std::vector<std::vector<int32_t>> answers(questions.size());
  for (const auto& [prompt, places] : by_prompt) {
    std::vector<Asked> together;
    for (const size_t place : places) {
      together.push_back({&questions[place], first + static_cast<int64_t>(place)});
    }
    auto some = AnswerTogether(parameters, size, together, keep_going);
    if (!some.has_value()) return std::nullopt;
    for (size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move((*some)[i]);
  }
  return answers;
}

std::optional<std::vector<std::vector<int32_t>>> LanguageEvaluator::AnswerTogether(
    const models::ParameterSet& parameters, int64_t size, absl::Span<const Asked> questions,
    const std::function<bool()>& keep_going) const {
  const at::Device device = parameters.any().device();
  const auto count = static_cast<int64_t>(questions.size());
  const auto prompt = static_cast<int64_t>(questions[0].question->prompt);
  const int64_t room = text_.SequenceTokens(size);
  std::vector<int64_t> next;
  std::vector<std::vector<int32_t>> texts;
  for (const Asked& asked : questions) {
    const absl::Span<const int32_t> shown = asked.question->Prompt();
    next.insert(next.end(), shown.begin(), shown.end());
    texts.emplace_back(shown.begin(), shown.end());
  }
  const at::Tensor positions =
      positions_.each()
          ? at::zeros({1, 1, count, room}, at::TensorOptions(device).dtype(at::kDouble))
          : Positions(size, device);
  // Ids of tokens may depend on those before them, which the model writes.
  const auto place = [&](int64_t seen, int64_t shown) {
    std::vector<double> own;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<double> all = OwnPositions(size, questions[i], texts[i]);
      own.insert(own.end(), all.begin() + seen, all.end());
    }
    positions.narrow(3, seen, shown)
        .copy_(data::ToDevice(own, {1, 1, count, shown}, at::kDouble, device));
  };
  std::vector<std::vector<int32_t>> answers(questions.size());
  size_t unfinished = questions.size();
  const std::unique_ptr<models::DecodingCache> cache = model_.StartDecoding(positions);
  // The last token that fits is written but never fed back to the model.
  for (int64_t seen = 0; unfinished > 0 && seen + 1 < room;) {
    if (!keep_going()) return std::nullopt;
    const int64_t shown = seen == 0 ? prompt : 1;
    if (positions_.each()) place(seen, shown);
    const at::Tensor written =
        model_
            .Decode(parameters, data::ToDevice(next, {1, count, shown}, at::kLong, device), *cache)
            .argmax(-1)
            .cpu();
    seen += shown;
    const int64_t* tokens = written.const_data_ptr<int64_t>();
    next.assign(tokens, tokens + count);
    for (size_t i = 0; i < answers.size(); ++i) {
      std::vector<int32_t>& answer = answers[i];
      texts[i].push_back(static_cast<int32_t>(next[i]));
      if (!answer.empty() && answer.back() == text_.task().end_token()) continue;
      answer.push_back(static_cast<int32_t>(next[i]));
      if (answer.back() == text_.task().end_token()) --unfinished;
    }
  }
  return answers;
}

std::optional<double> LanguageEvaluator::SumLosses(const models::ParameterSet& parameters,
                                                   int64_t size,
                                                   absl::Span<const tasks::TextExample> questions,
                                                   int64_t first,
                                                   const std::function<bool()>& keep_going,
                                                   std::vector<float>* each) const {
  const c10::NoGradGuard no_gradients;
  const at::Device device = parameters.any().device();
  std::vector<data::TextPiece> pieces;
  for (const tasks::TextExample& question : questions) {
    pieces.push_back(text_.AnswerPiece(question));
  }
  const size_t before = each == nullptr ? 0 : each->size();
  if (each != nullptr) each->resize(before + pieces.size());
  double sum = 0;
  for (const TextPass& pass : data::MakePasses(pieces)) {
    if (!keep_going()) return std::nullopt;
    models::ExampleGroups groups = ToExampleGroups(pass, device);
    const at::Tensor positions = PositionsOfPass(size, pass, questions, first, device, groups);
    const at::Tensor logits = model_.Forward(parameters, groups, positions, nullptr, nullptr);
    const at::Tensor targets = TargetsOf(pass, device);
    sum += SumCrossEntropy(logits, targets).to(at::kDouble).item<double>();
    if (each == nullptr) continue;
    const std::vector<float> means = MeanCrossEntropies(pass, logits, targets);
    for (size_t i = 0; i < means.size(); ++i) (*each)[before + pass.pieces[i]] = means[i];
  }
  return sum;
}

std::optional<LengthScore> LanguageEvaluator::Score(const models::ParameterSet& parameters,
                                                    int64_t size, int64_t questions,
                                                    const std::function<bool()>& keep_going,
                                                    const ScoreOptions& options) const {
  const int64_t bytes = options_.blocks * 2 * options_.d_model * text_.SequenceTokens(size) *
                        static_cast<int64_t>(parameters.any().element_size());
  const int64_t chunk = std::max<int64_t>(1, options_.memory_bytes / std::max<int64_t>(1, bytes));
  AnswerTally tally(size, options.each_sequence);
  AnswerSelection kept(options.answers);
  std::vector<float> each_loss;
  double loss = 0;
  int64_t tokens = 0;
  questions = text_.EvaluationSequences(size, questions);
  for (int64_t first = 0; first < questions; first += chunk) {
    std::vector<tasks::TextExample> asked;
    for (int64_t i = first; i < std::min(first + chunk, questions); ++i) {
      asked.push_back(text_.Question(SequenceSeed(options_.seed, options), size, i));
    }
    const auto answers = Answer(parameters, size, asked, keep_going, first);
    if (!answers.has_value()) return std::nullopt;
    const std::optional<double> losses = SumLosses(parameters, size, asked, first, keep_going,
                                                   options.each_sequence ? &each_loss : nullptr);
    if (!losses.has_value()) return std::nullopt;
    loss += *losses;
    for (size_t i = 0; i < asked.size(); ++i) {
      const tasks::AnswerComparison comparison = text_.task().Compare(asked[i], (*answers)[i]);
      tally.Add(comparison);
      if (v1::Answer* const answer = kept.Add(size, comparison.is_exact); answer != nullptr) {
        Show(asked[i].Prompt(), asked[i].Answer(), *answer);
        answer->mutable_expected()->Swap(answer->mutable_given());
        Show(asked[i].Prompt(), (*answers)[i], *answer);
        const int symbols = std::max(answer->expected_size(), answer->given_size());
        for (int s = 0; s < symbols && !comparison.is_exact; ++s) {
          const bool both = s < std::min(answer->expected_size(), answer->given_size());
          if (!both || answer->expected(s) != answer->given(s)) answer->add_wrong(s);
        }
      }
      tokens += static_cast<int64_t>(asked[i].Answer().size());
    }
  }
  LengthScore score = tally.Score(tokens == 0 ? 0 : loss / static_cast<double>(tokens));
  score.each_loss = std::move(each_loss);
  score.answers = kept.answers();
  return score;
}

void LanguageEvaluator::Show(absl::Span<const int32_t> prompt, absl::Span<const int32_t> given,
                             v1::Answer& answer) const {
  answer.set_input(text_.task().Format(prompt));
  answer.set_separator(std::string(text_.task().separator()));
  answer.clear_given();
  for (const int32_t& token : given) {
    if (token == text_.task().end_token()) return;
    answer.add_given(text_.task().Format({&token, 1}));
  }
}

tasks::TextExample LanguageEvaluator::Continued(const models::ParameterSet& parameters,
                                                const data::GivenSequence& given) const {
  tasks::TextExample example = {.tokens = {given.tokens.begin(), given.tokens.end()},
                                .prompt = given.tokens.size()};
  const std::vector<int32_t> answer =
      Answer(parameters, given.length, {&example, 1}, [] { return true; })->front();
  example.tokens.insert(example.tokens.end(), answer.begin(), answer.end());
  return example;
}

v1::Answer LanguageEvaluator::Predict(const models::ParameterSet& parameters,
                                      const data::GivenSequence& given) const {
  const tasks::TextExample example = Continued(parameters, given);
  v1::Answer answer;
  answer.set_length(static_cast<int32_t>(given.length));
  Show(example.Prompt(), example.Answer(), answer);
  return answer;
}

v1::AttentionMap LanguageEvaluator::CaptureAttention(const models::ParameterSet& parameters,
                                                     const data::GivenSequence& given) const {
  return Capture(parameters, given.length, 0, Continued(parameters, given));
}

v1::AttentionMap LanguageEvaluator::CaptureAttention(const models::ParameterSet& parameters,
                                                     int64_t size, int64_t sequence) const {
  v1::AttentionMap map =
      Capture(parameters, size, sequence, text_.Question(options_.seed, size, sequence));
  map.set_sequence(static_cast<int32_t>(sequence));
  return map;
}

v1::AttentionMap LanguageEvaluator::Capture(const models::ParameterSet& parameters, int64_t size,
                                            int64_t number,
                                            const tasks::TextExample& example) const {
  const c10::NoGradGuard no_gradients;
  const at::Device device = parameters.any().device();
  const std::vector<TextPass> passes = data::MakePasses({text_.AnswerPiece(example)});
  models::ExampleGroups groups = ToExampleGroups(passes[0], device);
  const at::Tensor positions =
      PositionsOfPass(size, passes[0], {&example, 1}, number, device, groups);
  models::Capture capture;
  (void)model_.Forward(parameters, groups, positions, nullptr, &capture);
  return MakeAttentionMap(size, {.tokens = passes[0].tokens}, positions, capture);
}

}  // namespace lengthwise::worker::evaluation
