// What a user means: experiments and trials by a text, and an interrupted experiment by its
// specification.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"
#include "specification/resolve.h"

namespace lengthwise::server {
namespace {

using testing::HasSubstr;
using Request = v1::FindExperimentRequest;
using Response = v1::FindExperimentResponse;

// A specification; `changes` are further lines, which replace those of the same field.
std::string Specification(const std::string& name, const std::vector<std::string>& changes = {}) {
  std::vector<std::string> lines = {
      absl::StrCat("name: ", name),
      "tasks: bucket_sort",
      "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}",
      "encodings: [none, sin_cos]",
      "learning_rates: 0.001",
      "seeds: [0]",
      "training: {steps: 200, batch_size: 4, lengths: {min: 1, max: 4}}",
      "evaluation: {lengths: [2, 8], sequences: 10}"};
  for (const std::string& change : changes) {
    const std::string field = change.substr(0, change.find(':') + 1);
    std::erase_if(lines, [&](const std::string& line) { return absl::StartsWith(line, field); });
    lines.push_back(change);
  }
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

class CoreSearchTest : public testing::Test {
 protected:
  CoreSearchTest()
      : coordinator_(NewDirectory(), 0, [this](const v1::CreateExperimentRequest& request) {
          return Resolve(request);
        }) {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
  }

  // Adds to each specification what tells releases apart: a field that an older one did not have,
  // and what it says about example files.
  absl::StatusOr<specification::Grid> Resolve(v1::CreateExperimentRequest request) const {
    if (request.has_specification()) {
      request.mutable_specification()->mutable_tasks(0)->mutable_parameters()->erase("contents");
    }
    auto grid = request.has_specification_text()
                    ? specification::Resolve(request.specification_text(), specification::Limits())
                    : specification::Resolve(request.specification(), specification::Limits());
    if (!grid.ok()) return grid;
    if (older_release_) grid->specification.mutable_training()->clear_checkpoint_every_seconds();
    (*grid->specification.mutable_tasks(0)->mutable_parameters())["contents"].set_string_value(
        older_release_ ? "{}" : "{\"more\": 1}");
    return grid;
  }

  absl::StatusOr<v1::CreateExperimentResponse> Create(const std::string& text, bool resume) {
    v1::CreateExperimentRequest request;
    request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
    request.mutable_specification_text()->set_text(text);
    request.set_resume(resume);
    return coordinator_.TryCreate(request);
  }
  void Submit(const std::string& name) {
    const auto created = Create(Specification(name), false);
    ASSERT_TRUE(created.ok()) << created.status();
  }

  absl::StatusOr<v1::FindExperimentResponse> Find(
      const std::string& text, Request::Use use = Request::READ,
      Request::Kind kind = Request::EXPERIMENT_OR_TRIAL) {
    Request request;
    request.set_text(text);
    request.set_use(use);
    request.set_kind(kind);
    return coordinator_->reads().FindExperiment(request);
  }
  // The short name of what is found; empty for NOT_FOUND.
  std::string Found(const std::string& text, Request::Use use) {
    const auto found = Find(text, use);
    if (!found.ok()) return absl::IsNotFound(found.status()) ? "" : found.status().ToString();
    const std::string& name =
        found->has_trial() ? found->trial().name() : found->experiment().name();
    return absl::StrReplaceAll(name, {{"experiments/", ""}, {"/trials/", "/"}});
  }
  std::string Error(const std::string& text, Request::Use use) {
    return std::string(Find(text, use).status().message());
  }

  bool older_release_ = false;
  TestCoordinator coordinator_;
};

TEST_F(CoreSearchTest, TextsMeanExperimentsAndTrials) {
  for (const std::string name : {"two", "two", "ablation", "grid10", "two-1"}) Submit(name);
  const std::string none = "bucket_sort-encoder-none-lr0.001-seed0";
  const std::string sin_cos = "bucket_sort-encoder-sin_cos-lr0.001-seed0";
  struct Case {
    std::string text;
    std::string found;
    Response::Match match = Response::MATCH_UNSPECIFIED;
  };
  const std::vector<Case> cases = {
      {"two-2", "two-2", Response::FULL_NAME},
      {"experiments/two-2", "two-2", Response::FULL_NAME},
      {"two-1", "two-1", Response::FULL_NAME},
      {"two-1-1", "two-1-1", Response::FULL_NAME},
      {"two", "two-2", Response::GUESS},
      {"experiments/two", "two-2", Response::GUESS},
      {"tw", ""},
      {"ablation", "ablation-1", Response::ONLY_OF_SPECIFICATION},
      {"ablation-", "ablation-1", Response::GUESS},
      {"abl", "ablation-1", Response::GUESS},
      {"grid10", "grid10-1", Response::ONLY_OF_SPECIFICATION},
      {"gri", "grid10-1", Response::GUESS},
      {"grid1", ""},
      {"Ablation-1", ""},
      {"two-2/" + none, "two-2/" + none, Response::FULL_NAME},
      {"experiments/two-2/trials/" + none, "two-2/" + none, Response::FULL_NAME},
      {"two-2/1", "two-2/" + sin_cos, Response::FULL_NAME},
      {"ablation/0", "ablation-1/" + none, Response::ONLY_OF_SPECIFICATION},
      {"two/1", "two-2/" + sin_cos, Response::GUESS},
      {"abl/0", "ablation-1/" + none, Response::GUESS},
      {"two-2/bucket_sort-encoder-s", "two-2/" + sin_cos, Response::GUESS},
      {"two-2/bucket_sort-encoder-", ""},
      {"two-2/bucket_sort-encoder-none-lr0.00", ""},
      {"two-2/2", ""},
      {"none/0", ""},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(Found(one.text, Request::READ), one.found) << one.text;
    if (!one.found.empty()) {
      EXPECT_EQ(Find(one.text)->match(), one.match) << one.text;
    }
    EXPECT_EQ(Found(one.text, Request::CHANGE), one.match == Response::GUESS ? "" : one.found)
        << one.text;
    const bool is_full = one.match == Response::FULL_NAME;
    EXPECT_EQ(Found(one.text, Request::DELETE), is_full ? one.found : "") << one.text;
  }
  EXPECT_FALSE(Find("two-2")->experiment().has_disk_use()) << "which takes long to measure";
}

TEST_F(CoreSearchTest, ErrorsNameWhatExists) {
  EXPECT_EQ(Error("none", Request::READ),
            "there is no experiment \"none\"; this server has none yet");
  for (const std::string empty : {"", "experiments/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Find(empty).status())) << empty;
  }
  for (const std::string name : {"quickstart", "quickstart", "ablation"}) Submit(name);
  EXPECT_THAT(Error("quikstart-1", Request::READ), HasSubstr("did you mean \"quickstart-1\"?"));
  EXPECT_THAT(Error("quick", Request::READ),
              HasSubstr("matches several experiments: quickstart-2, quickstart-1"));
  EXPECT_EQ(Error("quickstart", Request::CHANGE),
            "\"quickstart\" is the specification of several experiments (quickstart-2, "
            "quickstart-1); this command needs the full name of one");
  EXPECT_EQ(Error("abl", Request::CHANGE),
            "there is no experiment \"abl\"; this command needs a full name, such as ablation-1");
  EXPECT_EQ(Error("quickstart", Request::DELETE),
            "there is no experiment \"quickstart\"; `delete` needs a full name, and this one "
            "matches quickstart-2, quickstart-1");
  EXPECT_THAT(Error("ablation/bucket_sort-encoder-non-lr0.001-seed0", Request::READ),
              HasSubstr("; did you mean \"bucket_sort-encoder-none-lr0.001-seed0\"?"));
  EXPECT_EQ(Find("ablation-1", Request::READ, Request::TRIAL).status(),
            absl::InvalidArgumentError(
                "\"ablation-1\" is an experiment; name a trial of it, such as ablation-1/0"));
  EXPECT_EQ(Find("ablation-1/0", Request::READ, Request::EXPERIMENT).status(),
            absl::InvalidArgumentError(
                "\"ablation-1/0\" names a trial; name an experiment, such as ablation-1"));
}

TEST_F(CoreSearchTest, SameSpecificationResumes) {
  older_release_ = true;
  const std::vector<std::string> given = {"seeds: [0, 1]"};
  ASSERT_EQ(Create(Specification("again", given), true)->resumed(), false);
  older_release_ = false;
  const std::string training = "training: {steps: 200, batch_size: 4, lengths: ";
  struct Case {
    std::string change;
    bool resumes = false;
  };
  const std::vector<Case> cases = {
      {"seeds: [0, 1]", true},
      {"priority: 7", true},
      {"seeds: 0..1", true},
      {training + "1..4}", true},
      {training + "{min: 1, max: 4}, clip_norm: 1}", true},
      {"name: other"},
      {"description: other"},
      {"training: {steps: 201, batch_size: 4, lengths: 1..4}"},
      {"encodings: [sin_cos, none]"},
      {"seeds: [0, 1, 2]"},
      {"tasks: {name: bucket_sort, label: sort}"},
  };
  for (const Case& one : cases) {
    const auto created = Create(Specification("again", {given[0], one.change}), true);
    ASSERT_TRUE(created.ok()) << created.status();
    EXPECT_EQ(created->resumed(), one.resumes) << one.change;
    EXPECT_EQ(created->experiment().name() == "experiments/again-1", one.resumes) << one.change;
    EXPECT_EQ(created->repeats(), "") << one.change;
  }
  EXPECT_FALSE(Create(Specification("again", given), false)->resumed());
}

TEST_F(CoreSearchTest, EndedExperimentIsRepeated) {
  Submit("done");
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 200, {1}));
  }
  const auto created = Create(Specification("done"), true);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_FALSE(created->resumed());
  EXPECT_EQ(created->experiment().name(), "experiments/done-2");
  EXPECT_EQ(created->repeats(), "experiments/done-1");
}

}  // namespace
}  // namespace lengthwise::server
