// Tasks that update a state with every token and ask for each of its values: counting, and products
// in a group.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::memory {
namespace {

void Count(int32_t items, int32_t modulus, absl::Span<const int32_t> input,
           absl::Span<int32_t> target) {
  std::vector<int32_t> counts(static_cast<size_t>(items));
  for (size_t i = 0; i < input.size(); ++i) {
    int32_t& count = counts[static_cast<size_t>(input[i])];
    target[i] = count;
    count = (count + 1) % modulus;
  }
}

int64_t DigitsOfLargestSum(int64_t n) {
  int64_t digits = 1;
  for (int64_t largest = 9 * n; largest > 9; largest /= 10) ++digits;
  return digits;
}

void AddDigits(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  int64_t sum = std::accumulate(input.begin(), input.end(), int64_t{0});
  for (int32_t& digit : target) {
    digit = static_cast<int32_t>(sum % 10);
    sum /= 10;
  }
}

using Permutation = std::vector<int32_t>;

bool IsEven(const Permutation& permutation) {
  size_t inversions = 0;
  for (size_t i = 0; i < permutation.size(); ++i) {
    for (size_t j = i + 1; j < permutation.size(); ++j) {
      inversions += permutation[i] > permutation[j] ? 1 : 0;
    }
  }
  return inversions % 2 == 0;
}

// The elements of S5, A5 or Z5, in the order of their ids, for any number.
std::vector<Permutation> Elements(absl::string_view name) {
  int32_t size = 0;
  if (!absl::SimpleAtoi(name.substr(1), &size)) return {};
  Permutation element(static_cast<size_t>(size));
  std::iota(element.begin(), element.end(), 0);
  std::vector<Permutation> elements;
  if (name[0] == 'Z') {
    for (int32_t i = 0; i < size; ++i) {
      elements.push_back(element);
      std::rotate(element.begin(), element.begin() + 1, element.end());
    }
    return elements;
  }
  do {
    if (name[0] == 'S' || IsEven(element)) elements.push_back(element);
  } while (std::next_permutation(element.begin(), element.end()));
  return elements;
}

// products[a * size + b] is the element that permutes by b and then by a.
std::vector<int32_t> Products(const std::vector<Permutation>& elements) {
  std::map<Permutation, int32_t> ids;
  for (const Permutation& element : elements) {
    ids.emplace(element, static_cast<int32_t>(ids.size()));
  }
  std::vector<int32_t> products;
  for (const Permutation& a : elements) {
    for (const Permutation& b : elements) {
      Permutation product;
      for (const int32_t image : b) product.push_back(a[static_cast<size_t>(image)]);
      products.push_back(ids.at(product));
    }
  }
  return products;
}

struct Group {
  size_t size = 1;
  std::vector<int32_t> products = {0};
};

// `name` has factors, as "A4_x_Z5". The last factor's ids run fastest.
Group GroupOf(absl::string_view name) {
  Group group;
  for (const absl::string_view factor : absl::StrSplit(name, "_x_")) {
    const std::vector<Permutation> elements = Elements(factor);
    const std::vector<int32_t> of_factor = Products(elements);
    const size_t inner = elements.size(), size = group.size * inner;
    std::vector<int32_t> products(size * size);
    for (size_t a = 0; a < size; ++a) {
      for (size_t b = 0; b < size; ++b) {
        products[a * size + b] =
            group.products[a / inner * group.size + b / inner] * static_cast<int32_t>(inner) +
            of_factor[a % inner * inner + b % inner];
      }
    }
    group = {size, std::move(products)};
  }
  return group;
}

void Multiply(const Group& group, absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  size_t product = 0;  // the identity
  for (size_t i = 0; i < input.size(); ++i) {
    target[i] = group.products[product * group.size + static_cast<size_t>(input[i])];
    product = static_cast<size_t>(target[i]);
  }
}

}  // namespace

TaskEntry Counting() {
  return {
      {.name = "counting",
       .title = "Counting",
       .documentation =
           "Counts, at each token, how often it occurred before. Chang and Bisk 2024, \"Language "
           "Models Need Inductive Biases to Count Inductively\" (arXiv 2405.20131), selective "
           "counting; with one item their plain or modular counting, from 0. Tokens are "
           "independent and uniform, and counts start again at the modulus; the released data "
           "have no higher counts.",
       .parameters = {{.name = "items",
                       .default_value = int64_t{10},
                       .documentation = "Number of distinct tokens.",
                       .minimum = 1,
                       .maximum = 1000},
                      {.name = "modulus",
                       .default_value = int64_t{10},
                       .documentation = "Counts are modulo this number.",
                       .minimum = 2,
                       .maximum = 1000}}},
      TaskKind::kTransduction,
      "regular",
      0.1,
      [](const catalogue::Parameters& parameters) {
        const auto items = static_cast<int32_t>(parameters.Int("items"));
        const auto modulus = static_cast<int32_t>(parameters.Int("modulus"));
        return chomsky::FromFunctions({.input_size = items,
                                       .output_size = modulus,
                                       .output_length = chomsky::AsInput,
                                       .solve = std::bind_front(Count, items, modulus)});
      }};
}

TaskEntry DigitSum() {
  return {
      {.name = "digit_sum",
       .title = "Sum of Digits",
       .documentation =
           "Adds the input's digits: the sum in decimal, the least significant digit first, padded "
           "with zeros to the digits of the largest sum of so many. Digits are independent and "
           "uniform. No paper defines this form."},
      TaskKind::kTransduction,
      "",
      0.1,
      [](const catalogue::Parameters&) {
        return chomsky::FromFunctions({.input_size = 10,
                                       .output_size = 10,
                                       .output_length = DigitsOfLargestSum,
                                       .solve = AddDigits});
      },
      /*permutation_invariant=*/true};
}

TaskEntry WordProblem() {
  return {
      {.name = "word_problem",
       .title = "Word Problem",
       .documentation =
           "Multiplies elements of a group: at each token, the product of all so far. A later "
           "element permutes first. Ids are those of the released code: permutations in "
           "lexicographic order, 0 the identity. Merrill et al. 2024, \"The Illusion of State in "
           "State-Space Models\" (arXiv 2404.08819), section 5. Elements are independent and "
           "uniform.",
       .parameters = {{.name = "group",
                       .default_value = std::string("S5"),
                       .documentation = "S: all permutations of so many things; A: the even ones; "
                                        "Z: addition modulo the number; _x_: pairs.",
                       .allowed = {"S5", "A5", "A4_x_Z5", "Z60", "S3", "S4", "A4"}}}},
      TaskKind::kTransduction,
      "regular",
      1.0 / 120,
      [](const catalogue::Parameters& parameters) {
        Group group = GroupOf(parameters.String("group"));
        const auto size = static_cast<int32_t>(group.size);
        return chomsky::FromFunctions({.input_size = size,
                                       .output_size = size,
                                       .output_length = chomsky::AsInput,
                                       .solve = std::bind_front(Multiply, std::move(group))});
      }};
}

}  // namespace lengthwise::tasks::memory
