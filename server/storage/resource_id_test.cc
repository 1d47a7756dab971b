#include "server/storage/resource_id.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(ResourceIdTest, AcceptsIdsOfGrids) {
  EXPECT_TRUE(IsResourceId("quickstart-3"));
  EXPECT_TRUE(
      IsResourceId("bucket_sort-encoder-randomized_relative_max_position=256-lr0.001-seed0"));
  EXPECT_TRUE(IsResourceId("parity-encoder-none-lr1e-06-weights1-data2"));
  EXPECT_TRUE(IsResourceId("lr1e+20"));
  EXPECT_TRUE(IsResourceId(std::string(512, 'a')));
}

TEST(ResourceIdTest, RefusesPathsAndSeparators) {
  for (const std::string id : {"", ".", "..", "a/b", "/", "a b", "a\\b", "a%2e", "\xc3\xa4"}) {
    EXPECT_FALSE(IsResourceId(id)) << id;
  }
  EXPECT_FALSE(IsResourceId(std::string("a\0b", 3)));
  EXPECT_FALSE(IsResourceId(std::string(513, 'a')));
}

}  // namespace
}  // namespace lengthwise::server
