// A paper's printed table as data: what experiments/published/README.md describes. For `analyze`
// and completion; comparisons are made by the Python package (python/lengthwise/published.py).
#ifndef LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_TABLE_H_
#define LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/specification.pb.h"

namespace lengthwise::client {

// How the trials of one cell become one number.
enum class Statistic {
  // The best trial.
  kMaximum,
  // Mean and standard deviation over the seeds of the configuration (learning rate, and where a
  // column has several, encoding) with the highest mean.
  kMeanAtBestRate,
  // Mean and standard deviation over all trials.
  kMeanOfAll,
  // Median over the seeds of the configuration with the lowest.
  kMedian,
};

// What the numbers of a table are.
enum class Quantity {
  // A trial's mean accuracy over the lengths not seen in training or, of a column with a length,
  // its accuracy there, per cent. More is better.
  kUnseenAccuracy,
  // A trial's accuracy on examples of its own data set, per cent. How well it learned, and no
  // contest: nothing is marked as the best.
  kTrainingAccuracy,
  // Hours of training for the paper's number of steps. Less is better.
  kTrainingHours,
  // Training steps per second. More is better.
  kStepsPerSecond,
  // The loss at a column's length. Less is better.
  kLoss,
  // Cosine similarity of attention maps to those of a reference encoding, 0 to 1. Not of an
  // experiment's summary: `lengthwise analyze attention` compares with it.
  kAttentionCosine,
};

// Values that a component's parameters must have.
using ParameterValues = std::map<std::string, std::variant<bool, double, std::string>>;

struct PublishedColumn {
  std::string key;
  std::string label;  // as the paper prints it
  Statistic statistic = Statistic::kMaximum;
  // The encoding that a trial of this column has: its catalogue name, empty for any, and values
  // that its parameters must have.
  std::string encoding;
  ParameterValues parameters;
  // The network's parameter of that name.
  std::string attention = "softmax";
  // Where on the tasks' axis a loss or an accuracy was taken: the scale of numbers, the digits of
  // an operand. 0 for an accuracy that is a mean over lengths.
  int32_t length = 0;

  // Whether trials with such a network and encoding belong to this column. A parameter that they do
  // not have counts as the papers' ordinary case: not randomized, sorted, trained, soft-max
  // attention.
  bool Matches(const v1::Component& network, const v1::Component& encoding) const;
};

struct PublishedRow {
  std::string task;  // its name in the catalogue
  // The network that its trials have: its catalogue name, empty for any, and values that its
  // parameters must have.
  std::string network;
  ParameterValues network_parameters;
  std::string label;  // as the paper prints it
  std::string level;  // in the Chomsky hierarchy: "R", "DCF" or "CS"
  bool permutation_invariant = false;
  double random_accuracy = 0;  // per cent
  // Instead of the table's.
  std::optional<Quantity> quantity;
  // How many seeds the paper gave its trials, where these are not as many as the protocol's.
  std::optional<int64_t> seeds;

  // Whether the row names this network. A parameter that the network does not have counts as the
  // catalogue's default.
  bool MatchesNetwork(const v1::Component& network) const;
  // Whether trials of such a task, whatever its parameters (their differences are
  // named beside the comparison), and network belong to this row.
  bool Matches(const v1::Component& task, const v1::Component& network) const;
};

struct PublishedValue {
  double value = 0;
  std::optional<double> deviation;  // standard deviation
};

struct PublishedTable {
  std::string key;  // "randomized_pe/table_1"
  std::string citation;
  std::string table;  // "Table 1"
  std::string title;
  std::string aggregation;
  Quantity quantity = Quantity::kUnseenAccuracy;
  std::vector<PublishedColumn> columns;
  std::vector<PublishedRow> rows;
  // By indices of row and column. A cell that the paper leaves empty is absent.
  std::map<std::pair<size_t, size_t>, PublishedValue> cells;
  std::vector<std::string> notes;

  Quantity QuantityOf(size_t row) const { return rows[row].quantity.value_or(quantity); }
  // Whether accuracies are those at columns' lengths, and not means over lengths.
  bool HasLengthAccuracies() const;
};

// As files name it: "unseen_accuracy".
std::string QuantityName(Quantity quantity);

// INVALID_ARGUMENT for JSON of another form, with the file's name and what is wrong.
absl::StatusOr<PublishedTable> ParsePublishedTable(absl::string_view name, absl::string_view json);

// Every table that the program carries, sorted by key. INTERNAL if one of them cannot be read,
// which a test rules out.
absl::StatusOr<std::vector<PublishedTable>> PublishedTables();

// The one to compare with. INVALID_ARGUMENT with a suggestion for an unknown key.
absl::StatusOr<PublishedTable> FindPublishedTable(absl::string_view key);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_TABLE_H_
