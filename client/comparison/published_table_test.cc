#include "client/comparison/published_table.h"

#include <map>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Component Encoding(const std::string& name, std::map<std::string, bool> flags) {
  v1::Component component;
  component.set_name(name);
  for (const auto& [flag, value] : flags) {
    (*component.mutable_parameters())[flag].set_bool_value(value);
  }
  return component;
}

std::vector<std::string> ColumnsOf(const PublishedTable& table, const v1::Component& encoding,
                                   const v1::Component& network = {}) {
  std::vector<std::string> keys;
  for (const PublishedColumn& column : table.columns) {
    if (column.Matches(network, encoding)) keys.push_back(column.key);
  }
  return keys;
}

TEST(PublishedTableTest, TheProgramCarriesTheTablesOfThePaper) {
  const auto tables = PublishedTables();
  ASSERT_TRUE(tables.ok()) << tables.status();
  std::vector<std::string> keys;
  for (const PublishedTable& table : *tables) keys.push_back(table.key);
  EXPECT_THAT(
      keys,
      ElementsAre("addition_length_gen/statements", "lst_pe_init/table_1", "lst_pe_init/table_2",
                  "lst_pe_init/table_3", "lst_pe_init/table_4_adam", "lst_pe_init/table_4_sgd",
                  "lst_pe_init/table_5", "lst_pe_init/table_6", "positional_attention/figure_2",
                  "positional_attention/figure_3_10000", "positional_attention/figure_3_15000",
                  "positional_attention/figure_3_20000", "positional_attention/figure_3_25000",
                  "positional_attention/figure_3_30000", "positional_attention/figure_3_35000",
                  "positional_attention/figure_3_40000", "positional_attention/figure_3_45000",
                  "positional_attention/figure_3_5000", "positional_attention/figure_3_50000",
                  "positional_attention/figure_4_16", "positional_attention/figure_4_2",
                  "positional_attention/figure_4_32", "positional_attention/figure_4_4",
                  "positional_attention/figure_4_8", "positional_attention/figure_5",
                  "positional_attention/figure_9", "positional_attention/figures_7_8",
                  "positional_attention/table_1", "randomized_pe/figure_2_long",
                  "randomized_pe/figure_2_randomized", "randomized_pe/table_1",
                  "randomized_pe/table_2", "randomized_pe/table_3", "randomized_pe/table_4",
                  "randomized_pe/table_5"));
}

// The paper, Table 1: missing duplicate, relative 54.0, randomized relative 100.0; Table 4: bucket
// sort, learned 20.7 ± 2.9.
TEST(PublishedTableTest, HoldsWhatThePaperPrints) {
  const auto first = FindPublishedTable("randomized_pe/table_1");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->cells.size(), 15u * 11u);
  ASSERT_EQ(first->rows[9].task, "missing_duplicate_string");
  ASSERT_EQ(first->columns[2].key, "relative");
  ASSERT_EQ(first->columns[7].key, "rand_relative");
  EXPECT_EQ(first->cells.at({9, 2}).value, 54.0);
  EXPECT_EQ(first->cells.at({9, 7}).value, 100.0);
  EXPECT_FALSE(first->cells.at({9, 7}).deviation.has_value());
  std::set<std::string> invariant;
  for (const PublishedRow& row : first->rows) {
    if (row.permutation_invariant) invariant.insert(row.task);
  }
  EXPECT_THAT(invariant, ElementsAre("bucket_sort", "cycle_navigation", "parity_check"));

  const auto fourth = FindPublishedTable("randomized_pe/table_4");
  ASSERT_TRUE(fourth.ok()) << fourth.status();
  EXPECT_EQ(fourth->columns[5].statistic, Statistic::kMeanAtBestRate);
  ASSERT_EQ(fourth->columns[5].key, "learned");
  EXPECT_EQ(fourth->cells.at({14, 5}).value, 20.7);
  EXPECT_EQ(fourth->cells.at({14, 5}).deviation, 2.9);
}

// Zhou et al. 2024, Figure 1: "more than 98% of accuracy" at 100 digits, with FIRE and randomized
// positions.
TEST(PublishedTableTest, HoldsWhatATextSaysWithoutATable) {
  const auto table = FindPublishedTable("addition_length_gen/statements");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(ColumnsOf(*table, Encoding("fire", {{"randomized", true}})),
              ElementsAre("rand_fire"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("fire", {{"randomized", false}})), ElementsAre("fire"));
  EXPECT_EQ(table->cells.at({0, 1}).value, 98.0);
  EXPECT_TRUE(table->HasLengthAccuracies());
  EXPECT_EQ(table->columns[0].length, 100);
  EXPECT_EQ(table->columns[1].length, 100);
  // Section 3, "Scaling model size": "the 5M model remarkably achieves 80% accuracy in 100 digit
  // addition".
  EXPECT_EQ(table->cells.at({1, 0}).value, 80.0);
  EXPECT_EQ(table->cells.size(), 2u);
  v1::Component task, small;
  task.set_name("decimal_addition");
  small.set_name("causal_decoder");
  for (const auto& [name, value] : std::map<std::string, double>{
           {"blocks", 4}, {"heads", 4}, {"d_model", 256}, {"d_ff", 1024}}) {
    (*small.mutable_parameters())[name].set_number_value(value);
  }
  EXPECT_FALSE(table->rows[0].Matches(task, small));
  EXPECT_TRUE(table->rows[1].Matches(task, small));
  EXPECT_EQ(table->rows[1].seeds, 5);
  EXPECT_FALSE(table->rows[0].seeds.has_value());
}

TEST(PublishedTableTest, AnEncodingBelongsToTheColumnOfItsNameAndFlags) {
  const auto table = FindPublishedTable("randomized_pe/table_1");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(ColumnsOf(*table, Encoding("none", {})), ElementsAre("none"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {{"randomized", false}, {"sorted", true}})),
              ElementsAre("rope"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {{"randomized", true}, {"sorted", true}})),
              ElementsAre("rand_rope"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {{"randomized", true}})),
              ElementsAre("rand_rope"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {{"randomized", true}, {"sorted", false}})),
              ElementsAre());
  EXPECT_THAT(ColumnsOf(*table, Encoding("sinusoids", {})), ElementsAre());
}

TEST(PublishedTableTest, UnsortedPositionsHaveAColumnInTable3) {
  const auto table = FindPublishedTable("randomized_pe/table_3");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(ColumnsOf(*table, Encoding("sin_cos", {{"randomized", true}, {"sorted", false}})),
              ElementsAre("rand_sin_cos_unsorted"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("sin_cos", {{"randomized", true}, {"sorted", true}})),
              ElementsAre("rand_sin_cos"));
}

// The paper, Table 1: learn-0.2 0.956, 0.039.
TEST(PublishedTableTest, LearnedEncodingsDifferInTheDeviationThatTheyStartFrom) {
  const auto table = FindPublishedTable("lst_pe_init/table_1");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows[0].task, "latin_square");
  EXPECT_EQ(table->cells.at({0, 1}).value, 95.6);
  EXPECT_EQ(table->cells.at({0, 1}).deviation, 3.9);
  // "learn-0.2 ... 1.000 0.000" and "nope 0.334 0.020 0.509 0.002": training accuracies.
  EXPECT_EQ(table->rows[1].task, "latin_square");
  EXPECT_EQ(table->QuantityOf(0), Quantity::kUnseenAccuracy);
  EXPECT_EQ(table->QuantityOf(1), Quantity::kTrainingAccuracy);
  EXPECT_EQ(table->cells.at({1, 1}).value, 100.0);
  EXPECT_EQ(table->cells.at({1, 6}).value, 50.9);
  EXPECT_EQ(table->cells.at({1, 6}).deviation, 0.2);
  v1::Component learned = Encoding("learned", {{"trained", true}});
  (*learned.mutable_parameters())["stddev"].set_number_value(0.2);
  EXPECT_THAT(ColumnsOf(*table, learned), ElementsAre("learn_0.2"));
  (*learned.mutable_parameters())["stddev"].set_number_value(0.3);
  EXPECT_THAT(ColumnsOf(*table, learned), ElementsAre());
  EXPECT_THAT(ColumnsOf(*table, Encoding("learned", {{"trained", false}})), ElementsAre("random"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("none", {{"causal", true}})), ElementsAre("c_nope"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("none", {})), ElementsAre("nope"));
}

// The paper, Table 3: 0.600 0.722 0.016; Table 4, 0.010: Adam 0.588 and 0.186, SGD 0.885 and 0.101.
TEST(PublishedTableTest, AttentionMapsAndVerySmallTablesHaveTheirOwn) {
  const auto maps = FindPublishedTable("lst_pe_init/table_3");
  ASSERT_TRUE(maps.ok()) << maps.status();
  EXPECT_EQ(maps->quantity, Quantity::kAttentionCosine);
  ASSERT_EQ(maps->columns.size(), 20);
  EXPECT_EQ(maps->columns[5].key, "learn_0.6");
  EXPECT_EQ(maps->cells.at({0, 5}).value, 0.722);
  EXPECT_EQ(maps->cells.at({0, 5}).deviation, 0.016);
  const auto adam = FindPublishedTable("lst_pe_init/table_4_adam");
  const auto sgd = FindPublishedTable("lst_pe_init/table_4_sgd");
  ASSERT_TRUE(adam.ok() && sgd.ok());
  EXPECT_EQ(adam->cells.at({0, 0}).value, 58.8);
  EXPECT_EQ(adam->cells.at({0, 0}).deviation, 18.6);
  EXPECT_EQ(sgd->cells.at({0, 0}).value, 88.5);
  EXPECT_EQ(sgd->cells.at({0, 0}).deviation, 10.1);
}

TEST(PublishedTableTest, AWrongKeyIsToldWithTheNearest) {
  const absl::Status wrong = FindPublishedTable("randomized_pe/tabel_1").status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong));
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("did you mean \"randomized_pe/table_1\"?"));
}

TEST(PublishedTableTest, Table2HoldsHours) {
  const auto table = FindPublishedTable("randomized_pe/table_2");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->quantity, Quantity::kTrainingHours);
  EXPECT_EQ(table->columns[0].statistic, Statistic::kMeanOfAll);
  // Reverse string, randomized relative: 2.75 ± 0.41.
  ASSERT_EQ(table->rows[1].task, "reverse_string");
  ASSERT_EQ(table->columns[7].key, "rand_relative");
  EXPECT_EQ(table->cells.at({1, 7}).value, 2.75);
  EXPECT_EQ(table->cells.at({1, 7}).deviation, 0.41);
}

TEST(PublishedTableTest, Table5PutsGeometricAttentionBesideTheBestRandomizedEncoding) {
  const auto table = FindPublishedTable("randomized_pe/table_5");
  ASSERT_TRUE(table.ok()) << table.status();
  v1::Component geometric;
  (*geometric.mutable_parameters())["attention"].set_string_value("geometric");
  EXPECT_THAT(ColumnsOf(*table, Encoding("none", {}), geometric),
              ElementsAre("max_geometric", "avg_geometric"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {{"randomized", true}})),
              ElementsAre("max_table1", "avg_table4"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {})), ElementsAre());
  EXPECT_THAT(ColumnsOf(*table, Encoding("none", {})), ElementsAre());
  EXPECT_EQ(table->columns[1].statistic, Statistic::kMaximum);
  EXPECT_EQ(table->columns[3].statistic, Statistic::kMeanAtBestRate);
}

// The authors' result files: the sum at c = 3, 1.767 with RoPE over heads, 0.0006977 with
// positional attention.
TEST(PublishedTableTest, Figure9IsOfStandardAttentionWithRopeOverHeadsBesideItsPositions) {
  const auto table = FindPublishedTable("positional_attention/figure_9");
  ASSERT_TRUE(table.ok()) << table.status();
  v1::Component sum, standard;
  sum.set_name("cumulative_sum");
  standard.set_name("positional_attention");
  auto& parameters = *standard.mutable_parameters();
  parameters["attention_by"].set_string_value("input");
  const auto is_published = [&](bool input_positions, const std::string& rotary) {
    parameters["input_positions"].set_bool_value(input_positions);
    parameters["rotary"].set_string_value(rotary);
    return table->rows[0].Matches(sum, standard);
  };
  EXPECT_TRUE(is_published(true, "heads"));
  EXPECT_FALSE(is_published(true, "tokens"));
  EXPECT_FALSE(is_published(true, "none"));
  EXPECT_FALSE(is_published(false, "none"));
  EXPECT_THAT(ColumnsOf(*table, Encoding("rope", {})), ElementsAre());
  EXPECT_EQ(table->cells.at({0, 2}).value, 1.767);
  EXPECT_EQ(table->cells.at({1, 2}).value, 0.0006977);
  EXPECT_FALSE(table->rows[1].Matches(sum, standard));
}

TEST(PublishedTableTest, RefusesAFileWithACellOutsideTheTable) {
  const auto table = ParsePublishedTable("p_table_1", R"json({
    "paper": "p", "citation": "c", "table": "Table 1", "title": "t", "aggregation": "a",
    "comparison": {"quantity": "unseen_accuracy", "statistic": "maximum"},
    "notes": [],
    "columns": [{"key": "none", "label": "None", "encoding": {"name": "none"}}],
    "rows": [],
    "cells": [{"row": "even_pairs", "column": "none", "value": 1}]})json");
  EXPECT_THAT(std::string(table.status().message()),
              HasSubstr("a cell names \"even_pairs\", which is not in the table"));
  EXPECT_THAT(std::string(ParsePublishedTable("p", "{").status().message()), HasSubstr("p.json: "));
}

}  // namespace
}  // namespace lengthwise::client
