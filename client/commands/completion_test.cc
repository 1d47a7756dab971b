#include <set>

#include "client/commands/commands.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(PublishedKeysTest, EveryFileHasItsKeyAndTitle) {
  const std::vector<command_line::Candidate> keys = PublishedKeys();
  EXPECT_EQ(keys.size(), PublishedFiles().size());
  std::set<std::string> distinct;
  for (const command_line::Candidate& one : keys) {
    distinct.insert(one.text);
    EXPECT_FALSE(one.help.empty()) << one.text;
  }
  EXPECT_EQ(distinct.size(), keys.size());
  for (const char* key : {"randomized_pe/table_1", "lst_pe_init/table_4_sgd",
                          "positional_attention/figures_7_8", "addition_length_gen/statements"}) {
    EXPECT_EQ(distinct.count(key), 1u) << key;
  }
}

}  // namespace
}  // namespace lengthwise::client
