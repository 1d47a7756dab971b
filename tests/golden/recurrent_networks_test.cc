// Recurrent networks agree with the published code of "Neural Networks and the Chomsky Hierarchy":
// states, logits, loss and all gradients, in a pack of two members.
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/cross_entropy_loss.h"
#include "ATen/ops/full.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/layers/layers.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "models/networks/recurrent.h"
#include "tests/golden/agreement.h"
#include "tests/golden/golden_values.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

constexpr int64_t kMembers = 2;

// This implementation's parameters of a case of a file.
Given ParametersOf(const json& golden) {
  const std::map<std::string, std::string> names = {{"n_stacks", "stacks"}, {"n_tapes", "tapes"}};
  Given given = {{"hidden_size", golden.at("hidden").get<int64_t>()}};
  if (golden.at("model") == "stack_lstm") given["cell"] = std::string("lstm");
  if (golden.contains("computation_steps_mult")) {
    given["computation_steps"] = golden.at("computation_steps_mult").get<int64_t>();
  }
  for (const auto& [name, value] : golden.at("settings").items()) {
    if (name == "mlp_layers_size") {
      given["write_layers"] = absl::StrJoin(value.get<std::vector<int64_t>>(), ",");
    } else if (value.is_boolean()) {
      given[name] = value.get<bool>();
    } else if (name != "stack_size" || golden.at("model") != "ndstack_rnn") {
      // A nondeterministic stack has room for any sequence here.
      given[names.contains(name) ? names.at(name) : name] = value.get<int64_t>();
    }
  }
  return given;
}

std::string CounterpartOf(const json& golden) {
  const std::map<std::string, std::string> names = {{"stack_lstm", "stack_rnn"},
                                                    {"ndstack_rnn", "nondeterministic_stack_rnn"}};
  const std::string model = golden.at("model");
  return names.contains(model) ? names.at(model) : model;
}

// A case's network, and a pack of members with the case's weights.
class Subject {
 public:
  Subject(const json& golden, int64_t input_columns, at::ScalarType dtype)
      : golden_(golden), dtype_(dtype) {
    const std::string name = CounterpartOf(golden);
    auto network = models::CreateNetwork(
        name, Resolve(models::NetworkEntries(), name, ParametersOf(golden)), "none",
        Resolve(models::EncodingEntries(), "none", {}),
        {.input_columns = input_columns, .output_columns = golden.at("outputs")}, layout_);
    EXPECT_TRUE(network.ok()) << network.status();
    network_ = *std::move(network);
    arena_ = std::make_unique<models::ParameterArena>(layout_, kMembers, dtype, at::kCPU);
    EXPECT_EQ(layout_.slots().size(), golden.at("weights").size());
    for (const auto& [weight, values] : golden.at("weights").items()) {
      Row(arena_->parameters(), weight).copy_(Float64Values(values));
    }
  }

  // Logits [P, B, m, O] of the last m tokens of `rows`, which every member gets.
  at::Tensor Forward(const at::Tensor& rows, int64_t output_length, models::Capture* capture) {
    arena_->gradients().zero_();
    const int64_t tokens = rows.size(1);
    return network_->Forward(parameters(), {.tokens = rows.expand({kMembers, -1, -1}).contiguous()},
                             at::arange(tokens, at::kLong).expand({kMembers, 1, tokens}),
                             output_length, nullptr, capture);
  }

  models::ParameterSet parameters() { return arena_->Members(0, kMembers); }

  const at::Tensor& Parameter(const models::ParameterSet& set, absl::string_view name) const {
    for (size_t i = 0; i < layout_.slots().size(); ++i) {
      if (layout_.slots()[i].name == name) return set.tensors()[i];
    }
    throw std::runtime_error(std::string(name));
  }

  // Checks the loss of every member, and its gradients.
  void ExpectLoss(const at::Tensor& logits, const json& expected, const json& targets) {
    const at::Tensor classes = Float64Values(targets).to(at::kLong);
    at::Tensor sum = at::zeros({}, logits.options());
    for (int64_t p = 0; p < kMembers; ++p) {
      const at::Tensor loss = at::cross_entropy_loss(logits[p].flatten(0, 1), classes);
      ExpectAgreement(loss, expected.at("loss"), dtype_);
      sum = sum.add(loss);
    }
    sum.backward();
    for (const auto& [weight, values] : expected.at("gradients").items()) {
      SCOPED_TRACE(weight);
      for (int64_t p = 0; p < kMembers; ++p) {
        ExpectAgreement(Row(arena_->gradients(), weight)[p], values, dtype_);
      }
    }
  }

  // Checks [P, B, n, d] against [B][n][d].
  void ExpectEveryMember(const at::Tensor& actual, const json& expected) const {
    for (int64_t p = 0; p < kMembers; ++p) ExpectAgreement(actual[p], expected, dtype_);
  }

 private:
  // The place of the file's "cell_input.weight" in a tensor of the arena, of every member.
  at::Tensor Row(at::Tensor& arena, const std::string& weight) const {
    const std::string name = absl::StrReplaceAll(weight, {{".weight", ""}, {".bias", "_bias"}});
    for (const auto& slot : layout_.slots()) {
      if (slot.name == name) return arena.narrow(1, slot.offset, slot.size);
    }
    ADD_FAILURE() << "no parameter " << name;
    return arena.narrow(1, 0, 0);
  }

  const json& golden_;
  at::ScalarType dtype_;
  models::ParameterLayout layout_;
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<models::ParameterArena> arena_;
};

at::Tensor Ids(const json& rows) {
  return Float64Values(rows).to(at::kLong).view({static_cast<int64_t>(rows.size()), -1});
}

class RecurrentNetworkTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RecurrentNetworkTest, StatesLogitsAndGradientsMatch) {
  const json golden = ReadGolden(GetParam() + ".json", "baselines");
  if (golden.is_null()) GTEST_SKIP() << "no " << GetParam();
  for (const json& one : golden.at("cases")) {
    for (const json& run : one.at("runs")) {
      for (const at::ScalarType dtype : kFormulaTypes) {
        SCOPED_TRACE(absl::StrCat(one.at("model").get<std::string>(), ", ",
                                  one.at("hidden").get<int>(), " hidden, ",
                                  run.at("length").get<int>(), " tokens"));
        Subject subject(one, one.at("vocab"), dtype);
        // The published code is told the length of a tape's input. Here it is that of the tokens
        // before the answers, which begin at the next token, or at a further one.
        const int64_t length = run.at("length"), inputs = run.value("input_length", 0);
        at::Tensor tokens = Ids(run.at("tokens"));
        if (inputs > 0) tokens = at::cat({tokens, at::zeros({tokens.size(0), 1}, at::kLong)}, 1);
        models::Capture capture;
        const at::Tensor answers = subject.Forward(tokens, tokens.size(1) - inputs, &capture);
        const at::Tensor states = capture.depths.at(1).narrow(2, 0, length);
        subject.ExpectEveryMember(states, run.at("core_output"));
        const models::ParameterSet parameters = subject.parameters();
        const at::Tensor logits =
            at::cat({models::Linear(states.narrow(2, 0, inputs).relu(),
                                    subject.Parameter(parameters, "output"),
                                    subject.Parameter(parameters, "output_bias")),
                     answers.narrow(2, 0, length - inputs)},
                    2);
        subject.ExpectEveryMember(logits, run.at("logits"));
        subject.ExpectLoss(logits, run, run.at("targets"));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RecurrentNetworkTest,
                         ::testing::Values("recurrent_rnn", "recurrent_lstm", "recurrent_stack",
                                           "recurrent_ndstack", "recurrent_tape"),
                         [](const auto& test) { return test.param; });

// The input and an empty token for each answer, as tasks give them to a network.
at::Tensor TaskTokens(const json& golden, int64_t answers) {
  const at::Tensor input = Ids(golden.at("input"));
  return at::cat({input, at::full({input.size(0), answers}, golden.at("input_size").get<int64_t>(),
                                  at::kLong)},
                 1);
}

TEST(RecurrentPaddingTest, ComputationAndEmptyTokensHaveThePublishedPlacesAndIds) {
  const json golden = ReadGolden("recurrent_padding.json", "baselines");
  if (golden.is_null()) GTEST_SKIP() << "no recurrent_padding.json";
  std::map<std::string, size_t> cases;
  for (const json& layout : golden.at("layouts")) {
    SCOPED_TRACE(layout.dump());
    ++cases[layout.at("form").get<std::string>()];
    // The tasks ask for all answers at once, with an empty token for each. In the other published
    // form an empty token asks for the first answer, and each target for the next one. No task has
    // this form, so the targets are appended here; the tokens before them are this program's.
    const bool reads_targets = layout.at("form") == "targets_as_input";
    const int64_t n = layout.at("input_length_given_to_model");
    const int64_t steps = layout.at("computation_steps_mult");
    const auto places = layout.at("answer_positions").get<std::vector<int64_t>>();
    const auto answers = static_cast<int64_t>(places.size());
    const at::Tensor given = TaskTokens(layout, reads_targets ? 1 : answers);
    at::Tensor tokens =
        models::WithComputationTokens(given.unsqueeze(0), n, steps, layout.at("input_size"));
    tokens = tokens.squeeze(0);
    if (reads_targets) tokens = at::cat({tokens, Ids(layout.at("targets"))}, 1);
    EXPECT_TRUE(tokens.equal(Ids(layout.at("model_input"))));
    std::vector<int64_t> read(places.size());
    std::iota(read.begin(), read.end(), n + steps * n);
    EXPECT_EQ(read, places);
    EXPECT_EQ(tokens.size(1), n + steps * n + answers + (reads_targets ? 1 : 0));
  }
  EXPECT_GT(cases["empty_targets"], 0U);
  EXPECT_GT(cases["targets_as_input"], 0U);
}

TEST(RecurrentPaddingTest, WholeModelsMatch) {
  const json golden = ReadGolden("recurrent_padding.json", "baselines");
  if (golden.is_null()) GTEST_SKIP() << "no recurrent_padding.json";
  size_t cases = 0;
  for (const json& one : golden.at("end_to_end")) {
    for (const at::ScalarType dtype : kFormulaTypes) {
      ++cases;
      SCOPED_TRACE(one.at("model").get<std::string>());
      Subject subject(one, one.at("input_size").get<int64_t>() + 1, dtype);
      const at::Tensor targets = Ids(one.at("targets"));
      const at::Tensor logits =
          subject.Forward(TaskTokens(one, targets.size(1)), targets.size(1), nullptr);
      subject.ExpectEveryMember(logits, one.at("logits"));
      subject.ExpectLoss(logits, one, one.at("targets"));
    }
  }
  EXPECT_GT(cases, 0U);
}

}  // namespace
}  // namespace lengthwise::golden
