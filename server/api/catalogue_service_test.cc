#include <map>
#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "proto/catalogue_service.grpc.pb.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

TEST(CatalogueEntries, ListEveryNameOfASpecification) {
  std::map<v1::CatalogueKind, std::set<std::string>> names;
  for (const v1::CatalogueEntry& entry : CatalogueEntries(specification::AllCatalogues())) {
    EXPECT_TRUE(names[entry.kind()].insert(entry.name()).second) << entry.name() << " twice";
    EXPECT_FALSE(entry.documentation().empty()) << entry.name();
    for (const v1::CatalogueParameter& parameter : entry.parameters()) {
      EXPECT_FALSE(parameter.documentation().empty()) << entry.name() << "." << parameter.name();
    }
  }
  EXPECT_TRUE(names[v1::TASK].count("bucket_sort"));
  EXPECT_TRUE(names[v1::ENCODING].count("sin_cos"));
  EXPECT_TRUE(names[v1::NETWORK].count("encoder"));
  EXPECT_TRUE(names[v1::OPTIMIZER].count("adam"));
  EXPECT_TRUE(names[v1::SCHEDULE].count("constant"));
  EXPECT_TRUE(names[v1::PROTOCOL].count("randomized_positional_encodings"));
}

TEST(CatalogueEntries, TasksAndEncodingsHaveTheirFacts) {
  for (const v1::CatalogueEntry& entry : CatalogueEntries(specification::AllCatalogues())) {
    if (entry.kind() == v1::TASK && entry.name() == "even_pairs") {
      EXPECT_EQ(entry.facts().at("chomsky_level"), "regular");
      EXPECT_EQ(entry.facts().at("random_accuracy"), "0.5");  // one of two classes
      EXPECT_EQ(entry.facts().at("permutation_invariant"), "false");
      EXPECT_EQ(entry.facts().at("kind"), "transduction");
      EXPECT_FALSE(entry.facts().contains("seen_up_to")) << "its axis is the training length";
    }
    if (entry.kind() == v1::TASK && entry.name() == "cumulative_sum") {
      EXPECT_EQ(entry.facts().at("kind"), "regression");
      EXPECT_EQ(entry.facts().at("seen_up_to"), "1");
    }
    if (entry.kind() == v1::TASK && entry.name() == "latin_square") {
      EXPECT_EQ(entry.facts().at("kind"), "puzzle");
      EXPECT_EQ(entry.facts().at("seen_up_to"), "0");
    }
    if (entry.kind() == v1::TASK && entry.name() == "decimal_addition") {
      EXPECT_EQ(entry.facts().at("axis"), "digits");
      EXPECT_EQ(entry.facts().at("axis_title"), "number of digits");
      EXPECT_EQ(entry.facts().at("accuracy_title"), "exact match");
      EXPECT_EQ(entry.facts().at("loss_title"), "cross-entropy");
    }
    if (entry.kind() == v1::ENCODING && entry.name() == "none") {
      EXPECT_EQ(entry.facts().at("uses_positions"), "false");
    }
    if (entry.kind() == v1::ENCODING && entry.name() == "sin_cos") {
      EXPECT_EQ(entry.facts().at("uses_positions"), "true");
    }
  }
}

}  // namespace
}  // namespace lengthwise::server
