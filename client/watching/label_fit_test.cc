#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/display/terminal.h"
#include "client/watching/experiment_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Two tasks x four encodings x two learning rates x two seeds, as `watch` labels them.
std::vector<TrialView> ViewsOfTrials() {
  std::vector<TrialView> trials;
  for (const std::string task : {"modular_arithmetic", "modular_arithmetic_brackets"}) {
    for (const std::string encoding :
         {"sin_cos", "randomized_sin_cos", "relative", "randomized_relative"}) {
      for (const std::string rate : {"0.001", "0.0003"}) {
        for (const int seed : {0, 1}) {
          TrialView& trial = trials.emplace_back();
          trial.parts = {.names = {task, encoding},
                         .numbers = absl::StrCat("lr ", rate, " seed ", seed)};
          trial.label = trial.parts.Text();
        }
      }
    }
  }
  return trials;
}

std::vector<std::string> Fitted(const std::vector<TrialView>& trials, int wanted, int most) {
  const LabelFit fit(trials, wanted, most);
  std::vector<std::string> labels;
  for (const TrialView& trial : trials) {
    labels.push_back(fit(trial));
    EXPECT_LE(DisplayWidth(labels.back()), fit.width());
  }
  return labels;
}

TEST(LabelFitTest, LabelsThatFitStayAsTheyAre) {
  const std::vector<TrialView> trials = ViewsOfTrials();
  EXPECT_EQ(Fitted(trials, 200, 200)[0], "modular_arithmetic sin_cos lr 0.001 seed 0");
}

TEST(LabelFitTest, KeepsRatesAndSeedsAndTellsTrialsApart) {
  const std::vector<TrialView> trials = ViewsOfTrials();
  for (const int wanted : {56, 40, 32}) {
    const std::vector<std::string> labels = Fitted(trials, wanted, 66);
    EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), trials.size()) << wanted;
    for (size_t i = 0; i < labels.size(); ++i) {
      EXPECT_THAT(labels[i], EndsWith(trials[i].parts.numbers));
      EXPECT_LE(DisplayWidth(labels[i]), std::max(wanted, 40)) << labels[i] << " of " << wanted;
    }
  }
}

TEST(LabelFitTest, CutsTheMiddleOfEqualBeginnings) {
  const std::vector<std::string> labels = Fitted(ViewsOfTrials(), 40, 66);
  EXPECT_THAT(labels[4], AllOf(HasSubstr("rando"), HasSubstr("cos ")));
  EXPECT_THAT(labels[12], AllOf(HasSubstr("rando"), HasSubstr("tive ")));
}

TEST(LabelFitTest, NeverTakesMoreThanThereIs) {
  for (const int most : {30, 20, 8}) {
    for (const std::string& label : Fitted(ViewsOfTrials(), 8, most)) {
      EXPECT_LE(DisplayWidth(label), most);
    }
  }
}

}  // namespace
}  // namespace lengthwise::client
