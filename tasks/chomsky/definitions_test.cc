// Checks every task on inputs worked by hand, including the short lengths that the reference code
// treats specially and parameters that differ from the paper's.
#include <cstdint>
#include <string>
#include <vector>

#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "tasks/chomsky/testing/drawn_sample.h"

namespace lengthwise::tasks::chomsky {
namespace {

using Tokens = std::vector<int32_t>;

struct Example {
  std::string task;
  Tokens input, target;
};

void PrintTo(const Example& example, std::ostream* out) { *out << example.task; }

class DefinitionTest : public ::testing::TestWithParam<Example> {};

TEST_P(DefinitionTest, SolvesTheExample) {
  const CatalogueTask task(GetParam().task);
  EXPECT_EQ(task->OutputLength(static_cast<int64_t>(GetParam().input.size())),
            static_cast<int64_t>(GetParam().target.size()));
  EXPECT_EQ(task.Solve(GetParam().input, GetParam().target.size()), GetParam().target);
}

INSTANTIATE_TEST_SUITE_P(Regular, DefinitionTest,
                         ::testing::ValuesIn(std::vector<Example>{
                             {"even_pairs", {1}, {0}},
                             {"even_pairs", {0, 1, 0, 1}, {1}},  // 01, 10 and 01
                             {"even_pairs", {0, 1, 1, 0}, {0}},  // 01 and 10
                             {"parity_check", {1, 0, 1, 1}, {1}},
                             {"cycle_navigation", {0}, {4}},  // a step back from place 0
                             {"cycle_navigation", {2, 2, 1, 2, 2, 2}, {0}},  // five steps forward
                             {"modular_arithmetic", {3}, {3}},
                             {"modular_arithmetic", {1, 6, 2, 7, 4}, {3}},        // 1 - 2 * 4 = -7
                             {"modular_arithmetic", {2, 7, 3, 6, 4, 6, 1}, {1}},  // 2 * 3 - 4 - 1
                         }));

INSTANTIATE_TEST_SUITE_P(
    DeterministicContextFree, DefinitionTest,
    ::testing::ValuesIn(std::vector<Example>{
        {"reverse_string", {0, 1, 1}, {1, 1, 0}},
        {"stack_manipulation", {1}, {1, 2}},
        {"stack_manipulation", {0, 1, 4, 3}, {0, 1, 1, 0, 2}},
        {"stack_manipulation", {1, 2, 2, 4, 3}, {0, 1, 2, 0, 0, 0}},  // the second pop does nothing
        {"modular_arithmetic_brackets", {6, 1}, {4}},                 // -1
        {"modular_arithmetic_brackets", {8, 6, 3, 9}, {2}},           // (-3)
        {"modular_arithmetic_brackets", {8, 2, 6, 6, 4, 9}, {1}},     // (2--4) = 6
        // (2*(3+4)) = 14
        {"modular_arithmetic_brackets", {8, 2, 7, 8, 3, 5, 4, 9, 9}, {4}},
        {"solve_equation", {0}, {0}},
        {"solve_equation", {0, 0}, {0}},
        {"solve_equation", {9, 10, 3}, {3}},                       // x = 3
        {"solve_equation", {7, 1, 6, 6, 9, 8, 10, 0}, {4}},        // (1--x) = 0
        {"solve_equation", {7, 7, 6, 9, 8, 6, 3, 8, 10, 4}, {3}},  // ((-x)-3) = 4: x = -7
    }));

INSTANTIATE_TEST_SUITE_P(Unclassified, DefinitionTest,
                         ::testing::ValuesIn(std::vector<Example>{
                             {"copy_string", {0, 1, 1}, {0, 1, 1}},
                         }));

INSTANTIATE_TEST_SUITE_P(
    ContextSensitive, DefinitionTest,
    ::testing::ValuesIn(std::vector<Example>{
        {"duplicate_string", {0, 1, 1}, {0, 1, 1, 0, 1, 1}},
        {"missing_duplicate_string", {1}, {1}},
        {"missing_duplicate_string", {1, 2, 0, 1, 0, 0}, {0}},
        {"missing_duplicate_string", {0, 1, 2, 1, 3}, {0}},
        {"odds_first", {0, 0, 1, 1, 1}, {0, 1, 0, 1, 1}},          // places 1, 3, 0, 2, 4
        {"binary_addition", {1, 0}, {1, 2, 0}},                    // one number
        {"binary_addition", {1, 1, 2, 1}, {0, 0, 1, 2, 0}},        // 3 + 1
        {"binary_addition", {0, 1, 0, 2, 1}, {1, 1, 2, 0, 0, 0}},  // 2 + 1
        {"binary_multiplication", {0}, {2}},
        {"binary_multiplication", {1, 0}, {0, 2}},
        {"binary_multiplication", {1, 1, 2, 1, 1}, {1, 0, 0, 1, 2}},  // 3 * 3
        {"binary_multiplication", {0, 1, 2, 1, 0}, {0, 1, 2, 0, 0}},  // 2 * 1
        {"compute_sqrt", {1}, {1}},
        {"compute_sqrt", {0, 1, 1, 1, 1}, {0, 1, 1}},     // 15
        {"compute_sqrt", {1, 0, 0, 0, 0}, {1, 0, 0}},     // 16
        {"compute_sqrt", {1, 1, 1, 1, 1, 1}, {1, 1, 1}},  // 63
        {"bucket_sort", {4, 0, 2, 0}, {0, 0, 2, 4}},
    }));

TEST(MaskTest, CountsThroughTheFirstTerminator) {
  for (const char* name : {"stack_manipulation", "binary_addition", "binary_multiplication"}) {
    const CatalogueTask task(name);
    EXPECT_EQ(task.Mask({0, 1, 2, 0, 0}), (std::vector<uint8_t>{1, 1, 1, 0, 0})) << name;
    EXPECT_EQ(task.Mask({2, 0}), (std::vector<uint8_t>{1, 0})) << name;
    EXPECT_EQ(task.Mask({1, 2}), (std::vector<uint8_t>{1, 1})) << name;
  }
}

TEST(MaskTest, CountsEverythingWithoutATerminator) {
  EXPECT_EQ(CatalogueTask("bucket_sort").Mask({2, 2, 0}), (std::vector<uint8_t>{1, 1, 1}));
}

TEST(ParametersTest, ModulusShiftsTheOperatorTokens) {
  catalogue::Parameters parameters;
  parameters.Set("modulus", int64_t{7});
  // 3 * 4 - 6 = 6, with + = 7, - = 8, * = 9
  const CatalogueTask plain("modular_arithmetic", parameters);
  EXPECT_EQ(plain->input_size(), 11);
  EXPECT_EQ(plain->output_size(), 7);
  EXPECT_EQ(plain.Solve({3, 9, 4, 8, 6}, 1), Tokens{6});
  // (5*3), with ( = 10, ) = 11
  EXPECT_EQ(CatalogueTask("modular_arithmetic_brackets", parameters).Solve({10, 5, 9, 3, 11}, 1),
            Tokens{1});
  // (x-5) = 4: x = 2, with ( = 9, ) = 10, x = 11, '=' = 12
  EXPECT_EQ(CatalogueTask("solve_equation", parameters).Solve({9, 11, 8, 5, 10, 12, 4}, 1),
            Tokens{2});
  EXPECT_EQ(CatalogueTask("cycle_navigation", parameters).Solve({0, 0}, 1), Tokens{5});
}

TEST(ParametersTest, LargestModulusDoesNotOverflow) {
  catalogue::Parameters parameters;
  parameters.Set("modulus", int64_t{1000});
  // (999*999) = (-1)(-1)
  EXPECT_EQ(CatalogueTask("modular_arithmetic_brackets", parameters)
                .Solve({1003, 999, 1002, 999, 1004}, 1),
            Tokens{1});
  EXPECT_EQ(CatalogueTask("modular_arithmetic", parameters).Solve({999, 1002, 999}, 1), Tokens{1});
}

TEST(ParametersTest, WithoutMultiplicationBracketsShift) {
  catalogue::Parameters parameters;
  parameters.Set("multiplication", false);
  const CatalogueTask task("modular_arithmetic_brackets", parameters);
  EXPECT_EQ(task.Solve({7, 3, 5, 4, 8}, 1), Tokens{2});
  for (uint32_t row = 0; row < 50; ++row) {
    const DrawnSample sample = task.Draw(30, row);
    EXPECT_EQ(sample.input.front(), 7);
    EXPECT_EQ(sample.input.back(), 8);
  }
}

}  // namespace
}  // namespace lengthwise::tasks::chomsky
