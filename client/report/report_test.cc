#include "client/report/report.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "platform/sha256.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTrial[] = "experiments/e-1/trials/bucket_sort-relative";

v1::Trial MakeTrial(const std::string& name, v1::TrialState state) {
  v1::Trial trial;
  trial.set_name(name);
  trial.set_state(state);
  v1::TrialSpecification& specification = *trial.mutable_specification();
  specification.mutable_task()->set_name("bucket_sort");
  specification.mutable_task()->set_label("bucket_sort");
  specification.mutable_network()->set_name("encoder");
  specification.mutable_encoding()->set_name("relative");
  specification.mutable_encoding()->set_label("relative");
  specification.set_learning_rate(0.001);
  specification.mutable_evaluation()->set_seen_up_to(2);
  specification.mutable_evaluation()->add_attention_lengths(1);
  return trial;
}

// One layer and head; a token of input and one of output.
v1::AttentionMap MakeMap(const std::vector<float>& probabilities) {
  v1::AttentionMap map;
  map.set_length(1);
  map.add_tokens(3);
  map.add_tokens(9);
  map.set_layers(1);
  map.set_heads(1);
  map.mutable_probabilities()->assign(reinterpret_cast<const char*>(probabilities.data()),
                                      probabilities.size() * sizeof(float));
  return map;
}

// One trial that has succeeded, of accuracies 1.0 at length 1 and 0.625 at length 3.
ReportData MakeData() {
  ReportData data;
  data.experiment.set_name("experiments/e-1");
  data.experiment.set_owner("ada");
  v1::ExperimentSpecification& specification = *data.experiment.mutable_specification();
  specification.set_description("Does it sort?");
  specification.mutable_evaluation()->set_seen_up_to(2);
  specification.mutable_evaluation()->set_sequences(100);
  specification.add_tasks()->set_name("bucket_sort");
  data.experiment.mutable_trials()->set_succeeded(1);

  auto& cell = *data.summary.add_cells();
  cell.set_task("bucket_sort");
  cell.set_network("encoder");
  cell.set_encoding("relative");
  cell.set_learning_rate(0.001);
  cell.mutable_trials()->set_succeeded(1);
  for (const auto& [length, accuracy] : {std::pair(1, 1.0), std::pair(3, 0.625)}) {
    cell.add_lengths(length);
    cell.add_mean_accuracies(accuracy);
  }
  cell.mutable_unseen_accuracy()->set_mean(0.625);
  cell.mutable_unseen_accuracy()->set_trials(1);

  data.plots.emplace_back();
  PlotExperiment& plot = data.plots.back();
  plot.name = "e-1";
  plot.trials.push_back(MakeTrial(kTrial, v1::SUCCEEDED));
  auto& evaluation = *plot.accuracies.add_evaluations();
  evaluation.set_trial(kTrial);
  evaluation.mutable_accuracies()->set_final(true);
  for (const auto& [length, accuracy] : {std::pair(1, 1.0), std::pair(3, 0.625)}) {
    evaluation.mutable_accuracies()->add_lengths(length);
    evaluation.mutable_accuracies()->add_accuracies(accuracy);
  }
  plot.attention_maps[kTrial] = {MakeMap({1, 0, 0.25, 0.75})};
  return data;
}

std::string Render(const ReportData& data, const ReportOptions& options = {}) {
  const auto html = RenderReport(data, options);
  EXPECT_TRUE(html.ok()) << html.status();
  return html.value_or("");
}

// What stands between the two texts, which both must be there.
std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from);
  if (begin == std::string::npos) return "";
  const size_t end = text.find(to, begin + from.size());
  return end == std::string::npos ? ""
                                  : text.substr(begin + from.size(), end - begin - from.size());
}

nlohmann::json Maps(const std::string& html) {
  return nlohmann::json::parse(
      Between(html, "<script type=\"application/json\" id=\"attention-maps\">", "</script>"));
}

TEST(ReportTest, ShowsWhatTheExperimentFound) {
  const std::string html = Render(MakeData());
  EXPECT_THAT(html, HasSubstr("<h1>e-1</h1>"));
  EXPECT_THAT(html, HasSubstr("<p>Does it sort?</p>"));
  EXPECT_THAT(html, HasSubstr("<dt>owner</dt><dd>ada</dd>"));
  // The mean over the only unseen length.
  EXPECT_THAT(Between(html, "<tbody>", "</tbody>"), HasSubstr(">62.5<"));
  EXPECT_THAT(html, HasSubstr("<img alt=\"Accuracy by length: e-1\""));
}

TEST(ReportTest, NeedsNothingBesideTheFile) {
  const std::string html = Render(MakeData());
  for (const std::string loads : {"src=\"http", "href=\"http", "url(", "@import", "<link"}) {
    EXPECT_THAT(html, Not(HasSubstr(loads)));
  }
}

TEST(ReportTest, PicturesAreWholeSvgDocuments) {
  std::string svg;
  ASSERT_TRUE(absl::Base64Unescape(
      Between(Render(MakeData()), "src=\"data:image/svg+xml;base64,", "\""), &svg));
  EXPECT_THAT(svg, HasSubstr("<svg "));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(ReportTest, AttentionMapsKeepTheirProbabilities) {
  const nlohmann::json maps = Maps(Render(MakeData()));
  ASSERT_EQ(maps.size(), 1);
  EXPECT_EQ(maps[0]["tokens"], nlohmann::json({3, 9}));
  EXPECT_EQ(maps[0]["model"], "Bucket Sort, Relative");
  EXPECT_EQ(maps[0]["input"], "length 1");
  EXPECT_EQ(maps[0]["sequence"], 1);
  EXPECT_EQ(maps[0]["first_output"], 1);
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(maps[0]["probabilities"].get<std::string>(), &bytes));
  // 1, 0, 0.25 and 0.75 in steps of 1/255.
  EXPECT_EQ(bytes, std::string("\xff\x00\x40\xbf", 4));
}

TEST(ReportTest, MapsThatWouldMakeTheFileTooLargeAreCounted) {
  const std::string html = Render(MakeData(), {.max_attention_bytes = 3});
  EXPECT_THAT(html, HasSubstr("1 map is left out"));
  EXPECT_THAT(html, Not(HasSubstr("attention-viewer\"")));
}

// As in experiments/positional_attention/quick/figure5.yaml, whose networks have one encoding.
TEST(ReportTest, MapsOfNetworksThatShareAnEncodingAreModelsOfTheirOwn) {
  ReportData data = MakeData();
  PlotExperiment& plot = data.plots[0];
  const std::string other = "experiments/e-1/trials/bucket_sort-wide-relative";
  plot.trials.push_back(MakeTrial(other, v1::SUCCEEDED));
  plot.trials.back().mutable_specification()->mutable_network()->set_label("wide");
  auto& evaluation = *plot.accuracies.add_evaluations();
  evaluation = plot.accuracies.evaluations(0);
  evaluation.set_trial(other);
  plot.attention_maps[other] = {MakeMap({0, 1, 1, 0})};
  const nlohmann::json maps = Maps(Render(data));
  ASSERT_EQ(maps.size(), 2);
  EXPECT_EQ(maps[0]["model"], "Bucket Sort, encoder, Relative");
  EXPECT_EQ(maps[1]["model"], "Bucket Sort, wide, Relative");
  EXPECT_THAT(Render(data), HasSubstr("Of each task, network and encoding the trial that is best"));
}

// As many maps as there is room for: no length goes without before another has two.
TEST(ReportTest, EverySequenceHasItsMapAndLaterSequencesWaitForOtherLengths) {
  ReportData data = MakeData();
  std::vector<v1::AttentionMap>& maps = data.plots[0].attention_maps[kTrial];
  maps.clear();
  for (const int length : {1, 3}) {
    for (const int sequence : {0, 1, 2}) {
      maps.push_back(MakeMap({1, 0, 0, 1}));
      maps.back().set_length(length);
      maps.back().set_sequence(sequence);
    }
  }
  const auto names = [](const nlohmann::json& shown) {
    std::vector<std::string> list;
    for (const nlohmann::json& map : shown) {
      list.push_back(
          absl::StrCat(map["input"].get<std::string>(), "/", map["sequence"].get<int>()));
    }
    return list;
  };
  EXPECT_THAT(names(Maps(Render(data))), ElementsAre("length 1/1", "length 3/1", "length 1/2",
                                                     "length 3/2", "length 1/3", "length 3/3"));
  const std::string small = Render(data, {.max_attention_bytes = 3 * 4});
  EXPECT_THAT(names(Maps(small)), ElementsAre("length 1/1", "length 3/1", "length 1/2"));
  EXPECT_THAT(small, HasSubstr("3 maps are left out"));
}

// The tokens of a puzzle are its cells, and none of them an output.
TEST(ReportTest, PuzzlesHaveNoOutputTokens) {
  ReportData data = MakeData();
  data.plots[0].trials[0].mutable_specification()->mutable_task()->set_name("latin_square");
  data.plots[0].trials[0].mutable_specification()->mutable_task()->set_label("latin_square");
  const nlohmann::json maps = Maps(Render(data));
  EXPECT_EQ(maps[0]["input"], "vectors 1");
  EXPECT_EQ(maps[0]["first_output"], 2);
}

TEST(ReportTest, DamagedMapsAreToldAndNotShown) {
  ReportData data = MakeData();
  data.plots[0].attention_maps[kTrial][0].mutable_probabilities()->pop_back();
  EXPECT_EQ(RenderReport(data, {}).status().code(), absl::StatusCode::kInternal);
}

TEST(ReportTest, TextsOfUsersAreNoMarkup) {
  ReportData data = MakeData();
  const std::string hostile = "</script><script>alert(1)</script>\"&";
  data.experiment.mutable_specification()->set_description(hostile);
  data.experiment.set_owner(hostile);
  data.plots[0].trials[0].mutable_specification()->mutable_encoding()->set_label(hostile);
  data.plots[0].trials.push_back(MakeTrial("experiments/e-1/trials/other", v1::FAILED));
  data.plots[0].trials.back().set_reason(hostile);
  const std::string html = Render(data);
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;"));
  EXPECT_THAT(Maps(html)[0]["model"].get<std::string>(), HasSubstr(hostile));
}

TEST(ReportTest, TrialsThatFailedForOneReasonStandTogether) {
  ReportData data = MakeData();
  for (int i = 0; i < 60; ++i) {
    data.plots[0].trials.push_back(
        MakeTrial(absl::StrCat("experiments/e-1/trials/t", i), v1::FAILED));
    data.plots[0].trials.back().set_reason("the loss is not a number at step 7");
  }
  const std::string failures = Between(Render(data), "id=\"failures\"", "</section>");
  EXPECT_THAT(failures, HasSubstr(">the loss is not a number at step 7</h3>\n<p>t0, t1, "));
  EXPECT_THAT(failures, HasSubstr("t49 and 10 more</p>"));
}

TEST(ReportTest, SectionsWithNothingToShowAreLeftOut) {
  ReportData data = MakeData();
  data.summary.Clear();
  data.plots[0].accuracies.Clear();
  data.plots[0].attention_maps.clear();
  const std::string html = Render(data);
  EXPECT_THAT(html, HasSubstr("No trial has been evaluated in full."));
  for (const std::string section : {"published", "loss", "attention", "projections", "failures"}) {
    EXPECT_THAT(html, Not(HasSubstr(absl::StrCat("id=\"", section, "\""))));
  }
}

TEST(ReportTest, ItsPolicyAllowsItsOwnScriptAndNoNetwork) {
  const std::string html = Render(MakeData());
  const std::string policy =
      Between(html, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("http")));
  EXPECT_THAT(policy, Not(HasSubstr("*")));
  EXPECT_THAT(Between(policy, "script-src", ";"), Not(HasSubstr("unsafe")));
  const std::string script = Between(html, "<script>", "</script>");
  ASSERT_NE(script, "");
  EXPECT_THAT(policy,
              HasSubstr(absl::StrCat(
                  "'sha256-",
                  absl::Base64Escape(absl::HexStringToBytes(platform::Sha256Hex(script))), "'")));
}

TEST(ReportTest, ControlCharactersAreWrittenOut) {
  ReportData data = MakeData();
  data.experiment.mutable_specification()->set_description("\x1b]0;title\x07 \u202Etxt");
  const std::string html = Render(data);
  EXPECT_THAT(html, HasSubstr("\\x1b]0;title\\x07 \\u202etxt"));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
}

TEST(ReportTest, ATableForPhonesComesFirst) {
  const std::string html = Render(MakeData());
  const size_t narrow = html.find("<div class=\"wide phone\">");
  ASSERT_NE(narrow, std::string::npos);
  EXPECT_LT(narrow, html.find("<div class=\"wide\">"));
}

}  // namespace
}  // namespace lengthwise::client
