#include <string>

#include "gtest/gtest.h"
#include "server/coordination/event_log.h"

namespace lengthwise::server {
namespace {

EventPage Page(const std::string& text) {
  EventPage page;
  page.events.emplace_back().mutable_log_line()->set_text(text);
  return page;
}

RecentPages::Key Key(const std::string& name, int64_t start = 1) {
  return {.name = name, .start_position = start, .max_events = 10};
}

TEST(RecentPages, ServesAPageUntilTheExperimentChanges) {
  RecentPages pages;
  int64_t version = 0;
  EXPECT_FALSE(pages.Find("e", Key("experiments/e"), version).has_value());
  pages.Add("e", Key("experiments/e"), version, Page("one"));
  for (int i = 0; i < 3; ++i) {
    const auto page = pages.Find("e", Key("experiments/e"), version);
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ(page->events[0].log_line().text(), "one");
  }
  EXPECT_FALSE(pages.Find("e", Key("experiments/e", 2), version).has_value());
  pages.Changed("other");
  EXPECT_TRUE(pages.Find("e", Key("experiments/e"), version).has_value());
  pages.Changed("e");
  EXPECT_FALSE(pages.Find("e", Key("experiments/e"), version).has_value());
}

TEST(RecentPages, KeepsNoPageThatWasReadBeforeAChange) {
  RecentPages pages;
  int64_t before = 0;
  pages.Find("e", Key("experiments/e"), before);
  pages.Changed("e");  // between the read and the call below
  pages.Add("e", Key("experiments/e"), before, Page("old"));
  int64_t version = 0;
  EXPECT_FALSE(pages.Find("e", Key("experiments/e"), version).has_value());
}

TEST(RecentPages, CacheIsBounded) {
  RecentPages pages;
  constexpr int kPages = 10'000;
  int64_t version = 0;
  for (int i = 0; i < kPages; ++i) {
    pages.Find("e", Key("experiments/e", i + 1), version);
    pages.Add("e", Key("experiments/e", i + 1), version, Page("x"));
  }
  int kept = 0;
  for (int i = 0; i < kPages; ++i) {
    kept += pages.Find("e", Key("experiments/e", i + 1), version).has_value() ? 1 : 0;
  }
  EXPECT_GE(kept, 1);
  EXPECT_LE(kept, 100);
}

}  // namespace
}  // namespace lengthwise::server
