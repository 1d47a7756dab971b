// Resolves specifications with catalogues defined in this test.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "specification/catalogues.h"
#include "specification/resolve.h"
#include "tasks/text_task.h"

namespace lengthwise::specification {
namespace {

using ::testing::ElementsAre;

// Its output repeats the input `copies` times. Inputs of even length are one token shorter.
class CopyTask : public tasks::TransductionTask {
 public:
  explicit CopyTask(int64_t copies) : copies_(copies) {}
  int32_t input_size() const override { return 2; }
  int32_t output_size() const override { return 2; }
  int64_t InputLength(int64_t n) const override { return n % 2 == 0 ? n - 1 : n; }
  int64_t OutputLength(int64_t n) const override { return InputLength(n) * copies_; }
  void Sample(int64_t, random::Stream&, absl::Span<int32_t>, absl::Span<int32_t>) const override {}
  void Solve(absl::Span<const int32_t>, absl::Span<int32_t>) const override {}

 private:
  int64_t copies_;
};

std::unique_ptr<tasks::Task> CreateCopy(const catalogue::Parameters& parameters) {
  return std::make_unique<CopyTask>(parameters.Int("copies"));
}

// A text task with a configurable vocabulary.
class WordTask : public tasks::TextTask {
 public:
  WordTask(int32_t vocabulary, int32_t end, int32_t padding)
      : vocabulary_(vocabulary), end_(end), padding_(padding) {}
  int32_t vocabulary() const override { return vocabulary_; }
  int32_t end_token() const override { return end_; }
  int32_t padding_token() const override { return padding_; }
  absl::Status Check(int64_t) const override { return absl::OkStatus(); }
  int64_t LongestExample(int64_t size) const override { return size + 1; }
  tasks::TextExample Sample(int64_t, bool, random::Stream&) const override { return {}; }
  tasks::AnswerComparison Compare(const tasks::TextExample&,
                                  absl::Span<const int32_t>) const override {
    return {};
  }
  std::string Format(absl::Span<const int32_t>) const override { return ""; }
  absl::StatusOr<std::vector<int32_t>> Parse(absl::string_view) const override {
    return std::vector<int32_t>();
  }

 private:
  int32_t vocabulary_, end_, padding_;
};

std::unique_ptr<tasks::Task> CreateWords(const catalogue::Parameters& parameters) {
  const auto of = [&](const char* name) { return static_cast<int32_t>(parameters.Int(name)); };
  return std::make_unique<WordTask>(of("vocabulary"), of("end"), of("padding"));
}

int64_t longest_seen = 0;
int64_t width_seen = 0;

void RecordContext(const catalogue::Parameters&, const models::EncodingContext& context,
                   absl::string_view, std::vector<catalogue::Problem>&) {
  longest_seen = context.longest_sequence;
  width_seen = context.d_model;
}

models::EncodingContext ContextOf(const catalogue::Parameters& parameters) {
  return {.d_model = parameters.Int("width")};
}

class ResolveWithTest : public testing::Test {
 protected:
  ResolveWithTest() {
    task_.name = "copy";
    task_.parameters = {{.name = "copies", .default_value = int64_t{1}, .documentation = ""}};
    task_.create = CreateCopy;
    network_.name = "net";
    network_.parameters = {{.name = "width", .default_value = int64_t{8}, .documentation = ""},
                           {.name = "depth", .default_value = int64_t{1}, .documentation = ""}};
    network_.task_kinds = {tasks::TaskKind::kTransduction};
    network_.encoding_context = ContextOf;
    encoding_.name = "code";
    encoding_.check = RecordContext;
    optimizer_.name = "adam";
    optimizer_.parameters = {{.name = "beta1", .default_value = 0.9, .documentation = ""},
                             {.name = "beta2", .default_value = 0.99, .documentation = ""}};
    schedule_.name = "constant";
    protocol_.name = "paper";
    protocol_.defaults = MustParse(R"yaml(
tasks: {name: copy, copies: 3}
networks: [{name: net, width: 16}, {name: net, width: 32}]
encodings: code
learning_rates: 0.5
weight_seeds: [1, 2]
data_seeds: [3]
training: {steps: 5, optimizer: {name: adam, beta1: 0.7}, clip_norm: 0, lengths: 1..10}
evaluation: {lengths: 1..8}
)yaml");
  }

  absl::StatusOr<Grid> ResolveYaml(absl::string_view yaml) {
    const tasks::TaskEntry* const tasks[] = {&task_};
    const models::NetworkEntry* const networks[] = {&network_};
    const models::EncodingEntry* const encodings[] = {&encoding_};
    const catalogue::Entry* const optimizers[] = {&optimizer_};
    const models::ScheduleEntry* const schedules[] = {&schedule_};
    const ProtocolEntry* const protocols[] = {&protocol_};
    return ResolveWith({.tasks = tasks,
                        .networks = networks,
                        .encodings = encodings,
                        .optimizers = optimizers,
                        .schedules = schedules,
                        .protocols = protocols},
                       Parse(v1::SpecificationText::YAML, yaml), Limits());
  }

  tasks::TaskEntry task_;
  models::NetworkEntry network_;
  models::EncodingEntry encoding_;
  catalogue::Entry optimizer_;
  models::ScheduleEntry schedule_;
  ProtocolEntry protocol_;
};

TEST_F(ResolveWithTest, ProtocolFillsUnsetFields) {
  const absl::StatusOr<Grid> grid = ResolveYaml("{name: x, protocol: paper}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  ASSERT_EQ(grid->trials.size(), 4u);  // two networks, two weight seeds
  EXPECT_EQ(grid->trials[3].id, "copy-net_width=32-code-lr0.5-weights2-data3");
  EXPECT_EQ(grid->trials[0].pack->specification.training().clip_norm(), 0) << "0 is a value, too";
}

TEST_F(ResolveWithTest, SeedsReplaceTheProtocolSeeds) {
  const absl::StatusOr<Grid> grid = ResolveYaml("{name: x, protocol: paper, seeds: 9}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->trials[0].id, "copy-net_width=16-code-lr0.5-seed9");
  EXPECT_EQ(grid->specification.weight_seeds_size(), 0);
}

TEST_F(ResolveWithTest, UserOverridesProtocolOverridesCatalogue) {
  const absl::StatusOr<Grid> grid = ResolveYaml(
      "{name: x, protocol: paper, networks: {name: net, depth: 4}, "
      "training: {optimizer: {name: adam, beta2: 0.8}}}");
  ASSERT_TRUE(grid.ok()) << grid.status();
  const v1::TrialSpecification& trial = grid->trials[0].pack->specification;
  EXPECT_EQ(trial.network().parameters().at("depth").number_value(), 4);
  EXPECT_EQ(trial.network().parameters().at("width").number_value(), 16) << "the first of two";
  EXPECT_EQ(trial.training().optimizer().parameters().at("beta1").number_value(), 0.7);
  EXPECT_EQ(trial.training().optimizer().parameters().at("beta2").number_value(), 0.8);
  EXPECT_EQ(trial.task().parameters().at("copies").number_value(), 3);
}

TEST_F(ResolveWithTest, EncodingsMustFitTheLongestSequence) {
  // Lengths up to 10. Inputs of length 10 have 9 tokens, as those of length 9.
  ASSERT_TRUE(ResolveYaml("{name: x, protocol: paper, tasks: {name: copy, copies: 2}}").ok());
  EXPECT_EQ(longest_seen, 9 + 18);
  EXPECT_EQ(width_seen, 32);
  for (const char* field : {"lengths", "interval_lengths", "attention_lengths"}) {
    ASSERT_TRUE(ResolveYaml(absl::StrCat("{name: x, protocol: paper, tasks: copy, evaluation: {",
                                         field, ": [3, 101, 5]}}"))
                    .ok());
    EXPECT_EQ(longest_seen, 101 + 303) << field << ": the protocol's copies are 3";
  }
}

TEST_F(ResolveWithTest, NetworkMustSupportTheTasksKind) {
  network_.task_kinds.clear();
  EXPECT_EQ(ResolveYaml("{name: x, protocol: paper, networks: net}").status().message(),
            "networks[0]: \"net\" cannot learn \"copy\" (tasks[0]), expected no network");
}

TEST_F(ResolveWithTest, UnknownProtocolIsOneMistake) {
  EXPECT_EQ(ResolveYaml("{name: x, protocol: papre, networks: net}").status().message(),
            "protocol: unknown protocol \"papre\"; did you mean \"paper\"?");
}

// A model could not emit an end token outside its vocabulary, and would confuse it with equal
// padding.
TEST_F(ResolveWithTest, ClashingVocabularyIsRefused) {
  task_.name = "words";
  task_.kind = tasks::TaskKind::kText;
  task_.parameters = {{.name = "vocabulary", .default_value = int64_t{12}, .documentation = ""},
                      {.name = "end", .default_value = int64_t{10}, .documentation = ""},
                      {.name = "padding", .default_value = int64_t{11}, .documentation = ""}};
  task_.create = CreateWords;
  network_.task_kinds = {tasks::TaskKind::kText};
  const auto resolve = [&](const std::string& task) {
    return std::string(
        ResolveYaml(absl::StrCat("{name: x, protocol: paper, tasks: {name: words", task, "}}"))
            .status()
            .message());
  };
  EXPECT_EQ(resolve(""), "");
  EXPECT_EQ(resolve(", end: 12"),
            "tasks[0]: the task's vocabulary clashes: its end token 12 and its padding 11 must be "
            "two different ones of its 12 tokens, 0 to 11");
  for (const char* clash : {", padding: 12", ", padding: 10", ", end: -1", ", vocabulary: 11"}) {
    EXPECT_NE(resolve(clash), "") << clash;
  }
}

}  // namespace
}  // namespace lengthwise::specification
