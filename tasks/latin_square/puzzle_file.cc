#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 3> kConditionLists = {"binary", "ternary", "quaternary"};

// About 300 times the published set of 9,000 puzzles.
constexpr int64_t kMostFileBytes = 64 << 20;

// One puzzle's fields in a file.
struct Record {
  const Json* puzzle = nullptr;
  const Json* solution = nullptr;
  std::optional<int64_t> vectors;
  const Json* human_accuracy = nullptr;
};

const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Formats a value for a message. Shows numbers; shows only the type of other values, which may be
// long.
std::string Shown(const Json& value) {
  return value.is_number() ? value.dump() : absl::StrCat("a value of type ", value.type_name());
}

absl::StatusOr<FiledPuzzle> Check(const Record& record) {
  if (record.puzzle == nullptr || !record.puzzle->is_string()) {
    return absl::InvalidArgumentError("\"puzzle\" is missing; expected a string of 16 digits");
  }
  const auto& text = record.puzzle->get_ref<const std::string&>();
  ASSIGN_OR_RETURN(const Puzzle puzzle, ParsePuzzle(text));
  const std::optional<Deduction> deduction = Deduce(puzzle);
  if (!deduction) {
    return absl::InvalidArgumentError(
        absl::StrCat("no rule of one, two or three vectors settles the target of ", text));
  }
  FiledPuzzle filed{.solved = {puzzle, *deduction}};
  if (record.solution != nullptr && *record.solution != int64_t{deduction->symbol}) {
    return absl::InvalidArgumentError(absl::StrCat("the solution of ", text, " is ",
                                                   int{deduction->symbol}, ", not ",
                                                   Shown(*record.solution)));
  }
  if (record.vectors && *record.vectors != deduction->vectors) {
    return absl::InvalidArgumentError(absl::StrCat(text, " has a condition of ", deduction->vectors,
                                                   " vectors, not ", *record.vectors));
  }
  if (record.human_accuracy != nullptr && !record.human_accuracy->is_null()) {
    filed.human_accuracy =
        record.human_accuracy->is_number() ? record.human_accuracy->get<double>() : -1;
    if (!(*filed.human_accuracy >= 0 && *filed.human_accuracy <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "human_accuracy ", Shown(*record.human_accuracy), " is not a number from 0 to 1"));
    }
  }
  return filed;
}

Record FromObject(const Json& entry) {
  Record record;
  if (!entry.is_object()) return record;
  record.puzzle = Member(entry, "puzzle");
  record.solution = Member(entry, "solution");
  record.human_accuracy = Member(entry, "human_accuracy");
  if (const Json* vectors = Member(entry, "vectors")) {
    record.vectors = vectors->is_number_integer() ? vectors->get<int64_t>() : 0;
  }
  return record;
}

Record FromPair(const Json& entry, int64_t vectors) {
  Record record{.vectors = vectors};
  if (!entry.is_array() || entry.size() != 2) return record;
  record.puzzle = &entry[0];
  record.solution = &entry[1];
  return record;
}

class Reader {
 public:
  explicit Reader(absl::string_view name) : name_(name) {}

  // `list` and `index` locate the entry in the file.
  absl::Status Add(const char* list, size_t index, const Record& record) {
    absl::StatusOr<FiledPuzzle> filed = Check(record);
    if (filed.ok() && !seen_.insert(filed->solved.puzzle).second) {
      filed = absl::InvalidArgumentError(
          absl::StrCat(FormatPuzzle(filed->solved.puzzle), " occurs twice"));
    }
    if (!filed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": ", list, "[", index, "]: ", filed.status().message()));
    }
    puzzles_.push_back(*filed);
    return absl::OkStatus();
  }

  std::vector<FiledPuzzle> Take() { return std::move(puzzles_); }

 private:
  absl::string_view name_;
  absl::flat_hash_set<Puzzle> seen_;
  std::vector<FiledPuzzle> puzzles_;
};

}  // namespace

absl::StatusOr<std::vector<FiledPuzzle>> ParsePuzzleFile(absl::string_view text,
                                                         absl::string_view name) {
  const Json file =
      Json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not a JSON object"));
  }
  Reader reader(name);
  if (const Json* list = Member(file, "puzzles"); list != nullptr && list->is_array()) {
    for (size_t i = 0; i < list->size(); ++i) {
      RETURN_IF_ERROR(reader.Add("puzzles", i, FromObject((*list)[i])));
    }
  }
  for (size_t condition = 0; condition < kConditionLists.size(); ++condition) {
    const Json* list = Member(file, kConditionLists[condition]);
    if (list == nullptr || !list->is_array()) continue;
    for (size_t i = 0; i < list->size(); ++i) {
      RETURN_IF_ERROR(reader.Add(kConditionLists[condition], i,
                                 FromPair((*list)[i], static_cast<int64_t>(condition) + 1)));
    }
  }
  std::vector<FiledPuzzle> puzzles = reader.Take();
  if (puzzles.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " has no puzzles: neither a list \"puzzles\" nor lists \"binary\", \"ternary\" and "
        "\"quaternary\""));
  }
  return puzzles;
}

absl::StatusOr<std::vector<FiledPuzzle>> ReadPuzzleFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, platform::ReadFile(path, kMostFileBytes));
  return ParsePuzzleFile(text, path);
}

}  // namespace lengthwise::tasks::latin_square
