// METRICS.md documents exactly what the real programs export.
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/testing/scrape.h"
#include "tests/monitoring/exposition.h"
#include "tests/monitoring/small_run.h"

namespace lengthwise::monitoring_test {
namespace {

struct Documented {
  std::string type;
  std::set<std::string> labels;
  std::string meaning;
  bool operator==(const Documented&) const = default;
};

// The rows of the page's tables, by section and metric.
std::map<std::string, std::map<std::string, Documented>> ReadPage() {
  std::map<std::string, std::map<std::string, Documented>> sections;
  std::ifstream page("METRICS.md");
  EXPECT_TRUE(page.good());
  std::string section;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) section = line.substr(3);
    if (!absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    EXPECT_EQ(cells.size(), 6u) << line;
    if (cells.size() != 6) continue;
    Documented row = {.type = cells[2], .meaning = cells[4]};
    for (absl::string_view label : absl::StrSplit(cells[3], ", ", absl::SkipEmpty())) {
      row.labels.emplace(absl::StripSuffix(absl::StripPrefix(label, "`"), "`"));
    }
    const std::string name = absl::StrReplaceAll(cells[1], {{"`", ""}});
    EXPECT_TRUE(sections[section].emplace(name, row).second) << name << " occurs twice";
  }
  return sections;
}

class MetricsPageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { run_ = std::make_unique<SmallRun>(testing::TempDir()); }
  static void TearDownTestSuite() { run_.reset(); }

  // Expects the endpoint to export exactly the families of these sections, with the page's types
  // and labels.
  static void ExpectExported(const std::string& address, const std::vector<std::string>& sections) {
    const std::map<std::string, ExportedFamily> exported =
        ParseExposition(monitoring::Scrape(address));
    const auto page = ReadPage();
    std::set<std::string> documented;
    for (const std::string& section : sections) {
      ASSERT_TRUE(page.contains(section)) << section;
      for (const auto& [name, row] : page.at(section)) {
        documented.insert(name);
        EXPECT_GT(row.meaning.size(), 10u) << name << " has no explanation";
        const auto found = exported.find(name);
        if (found == exported.end()) {
          ADD_FAILURE() << name << " is documented but not exported by " << address;
          continue;
        }
        EXPECT_EQ(found->second.type, row.type) << name;
        EXPECT_NE(found->second.help, "") << name;
        // This machine may have no GPU. A worker does not know the server's clock.
        if (found->second.labels.empty() &&
            (absl::StrContains(name, "_gpu_") || absl::StrContains(name, "_clock_"))) {
          continue;
        }
        EXPECT_THAT(found->second.labels, testing::ElementsAre(row.labels)) << name;
      }
    }
    for (const auto& [name, family] : exported) {
      EXPECT_TRUE(documented.contains(name)) << name << " is exported but not documented";
    }
  }

  static std::unique_ptr<SmallRun> run_;
};

std::unique_ptr<SmallRun> MetricsPageTest::run_;

TEST_F(MetricsPageTest, DocumentsTheServersMetrics) {
  ExpectExported(run_->server_metrics(), {"Scheduler", "Store", "Owners", "Calls and watchers",
                                          "Workers", "Running trials", "Every program"});
}

TEST_F(MetricsPageTest, DocumentsAWorkersMetrics) {
  ExpectExported(run_->worker_metrics(), {"Workers", "Every program"});
}

TEST_F(MetricsPageTest, EveryListedLabelValueIsExported) {
  const std::string text = monitoring::Scrape(run_->server_metrics());
  const auto page = ReadPage();
  for (const auto& [metric, label] : std::vector<std::pair<std::string, std::string>>{
           {"lengthwise_trials", "state"},
           {"lengthwise_decisions_total", "decision"},
           {"lengthwise_trial_retries_total", "reason"},
           {"lengthwise_trial_failures_total", "reason"}}) {
    const std::string& meaning = page.at("Scheduler").at(metric).meaning;
    int values = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      if (!absl::ConsumePrefix(&line, absl::StrCat(metric, "{", label, "=\""))) continue;
      ++values;
      EXPECT_THAT(meaning,
                  testing::HasSubstr(absl::StrCat("`", line.substr(0, line.find('"')), "`")));
    }
    EXPECT_GE(values, 5) << metric;
  }
}

TEST_F(MetricsPageTest, NumbersMatchTheRun) {
  const std::string text = monitoring::Scrape(run_->server_metrics());
  EXPECT_THAT(text, testing::HasSubstr("\nlengthwise_trials{state=\"running\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("\nlengthwise_trials{state=\"succeeded\"} 1\n"));
  // The server recognizes this reason in the worker's message.
  EXPECT_THAT(text, testing::HasSubstr(
                        "\nlengthwise_trial_failures_total{reason=\"loss_not_finite\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("\nlengthwise_workers_alive 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("length_bucket=\"09-10\"}"));
  // The ids of finished trials are gone.
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("experiment=\"short-1\"")));
}

}  // namespace
}  // namespace lengthwise::monitoring_test
