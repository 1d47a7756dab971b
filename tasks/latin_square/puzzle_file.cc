#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

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

const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Formats a value for a message. Shows numbers; shows only the type of other values, which may be
// long.
std::string Shown(const Json& value) {
  return value.is_number() ? value.dump() : absl::StrCat("a value of type ", value.type_name());
}

absl::StatusOr<SolvedPuzzle> Check(const Json& entry) {
  const Json* const member = Member(entry, "puzzle");
  if (member == nullptr || !member->is_string()) {
    return absl::InvalidArgumentError("\"puzzle\" is missing; expected a string of 16 digits");
  }
  const auto& text = member->get_ref<const std::string&>();
  ASSIGN_OR_RETURN(const Puzzle puzzle, ParsePuzzle(text));
  const std::optional<Deduction> deduction = Deduce(puzzle);
  if (!deduction) {
    return absl::InvalidArgumentError(
        absl::StrCat("no rule of one, two or three vectors settles the target of ", text));
  }
  if (const Json* solution = Member(entry, "solution");
      solution != nullptr && *solution != int64_t{deduction->symbol}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the solution of ", text, " is ", int{deduction->symbol}, ", not ", Shown(*solution)));
  }
  if (const Json* vectors = Member(entry, "vectors");
      vectors != nullptr && *vectors != int64_t{deduction->vectors}) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " has a condition of ", deduction->vectors, " vectors, not ",
                     vectors->is_number_integer() ? vectors->get<int64_t>() : 0));
  }
  return SolvedPuzzle{puzzle, *deduction};
}

}  // namespace

absl::StatusOr<std::vector<SolvedPuzzle>> ParsePuzzleFile(absl::string_view text,
                                                          absl::string_view name) {
  const Json file =
      Json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not a JSON object"));
  }
  absl::flat_hash_set<Puzzle> seen;
  std::vector<SolvedPuzzle> puzzles;
  // `list` and `index` locate the entry in the file.
  const auto add = [&](const char* list, size_t index, const Json& entry) {
    absl::StatusOr<SolvedPuzzle> solved = Check(entry);
    if (solved.ok() && !seen.insert(solved->puzzle).second) {
      solved =
          absl::InvalidArgumentError(absl::StrCat(FormatPuzzle(solved->puzzle), " occurs twice"));
    }
    if (!solved.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", list, "[", index, "]: ", solved.status().message()));
    }
    puzzles.push_back(*solved);
    return absl::OkStatus();
  };
  if (const Json* list = Member(file, "puzzles"); list != nullptr && list->is_array()) {
    for (size_t i = 0; i < list->size(); ++i) RETURN_IF_ERROR(add("puzzles", i, (*list)[i]));
  }
  for (size_t condition = 0; condition < kConditionLists.size(); ++condition) {
    const Json* list = Member(file, kConditionLists[condition]);
    if (list == nullptr || !list->is_array()) continue;
    for (size_t i = 0; i < list->size(); ++i) {
      const Json& pair = (*list)[i];
      Json entry;
      if (pair.is_array() && pair.size() == 2) {
        entry = {{"puzzle", pair[0]}, {"solution", pair[1]}, {"vectors", condition + 1}};
      }
      RETURN_IF_ERROR(add(kConditionLists[condition], i, entry));
    }
  }
  if (puzzles.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " has no puzzles: neither a list \"puzzles\" nor lists \"binary\", \"ternary\" and "
        "\"quaternary\""));
  }
  return puzzles;
}

absl::StatusOr<std::vector<SolvedPuzzle>> ReadPuzzleFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, platform::ReadFile(path, kMostFileBytes));
  return ParsePuzzleFile(text, path);
}

}  // namespace lengthwise::tasks::latin_square
