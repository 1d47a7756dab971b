#include "tasks/examples/contents.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tasks/examples/line.h"

namespace lengthwise::tasks::examples {
namespace {

using OrderedJson = nlohmann::ordered_json;

absl::Status Refused() {
  return absl::InvalidArgumentError("is filled in by `lengthwise`; remove it");
}

// -1 if `json` is not an integer; the library would truncate a fraction.
int64_t WholeNumber(const nlohmann::json& json) {
  return json.is_number_integer() ? json.get<int64_t>() : -1;
}

FileBytes BytesIn(const nlohmann::json& json) {
  return {.train = WholeNumber(json.at("train_bytes")), .test = WholeNumber(json.at("test_bytes"))};
}

bool IsOfFiles(const FileBytes& bytes) {
  return bytes.train >= 0 && bytes.train <= kMostFileBytes && bytes.test >= 0 &&
         bytes.test <= kMostFileBytes;
}

constexpr std::array<const char*, 4> kForms = {"symbols", "characters", "words", "numbers"};

Contents::OfPart OfPartOf(const Part& part) {
  Contents::OfPart summary;
  for (const auto& [length, group] : part) {
    const auto count = static_cast<int64_t>(group.examples.size());
    summary.examples += count;
    summary.lengths[length] = count;
    summary.longest = std::max(summary.longest, group.longest);
    summary.longest_by_length[length] = group.longest;
    int64_t& shortest = summary.shortest_by_length[length];
    shortest = group.longest;
    for (const uint32_t first : group.shapes) {
      const Example& example = group.examples[first];
      shortest = std::min<int64_t>(shortest, example.inputs + example.targets);
    }
  }
  return summary;
}

// Run-length encoding of neighbouring lengths with equal counts: "5x100,6-20x10".
std::string LengthsText(const std::map<int32_t, int64_t>& lengths) {
  std::string text;
  for (auto run = lengths.begin(); run != lengths.end();) {
    auto last = run, next = std::next(run);
    while (next != lengths.end() && next->first == last->first + 1 && next->second == run->second) {
      last = next++;
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", run->first);
    if (last != run) absl::StrAppend(&text, "-", last->first);
    absl::StrAppend(&text, "x", run->second);
    run = next;
  }
  return text;
}

bool ParseLengths(absl::string_view text, std::map<int32_t, int64_t>& lengths) {
  for (const absl::string_view run : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(run, 'x');
    int64_t count = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &count) || count < 1) return false;
    const std::vector<absl::string_view> ends = absl::StrSplit(parts[0], '-');
    int32_t first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last)) {
      return false;
    }
    if (first < 1 || last < first || last > kMostLength) return false;
    for (int32_t length = first; length <= last; ++length) {
      if (!lengths.emplace(length, count).second) return false;
    }
  }
  return true;
}

OrderedJson PartJson(const Contents::OfPart& part) {
  OrderedJson json = {{"examples", part.examples},
                      {"longest", part.longest},
                      {"lengths", LengthsText(part.lengths)}};
  if (part.longest_by_length.empty()) return json;  // read from release 0.2.0
  json["longest_by_length"] = LengthsText(part.longest_by_length);
  if (part.shortest_by_length != part.longest_by_length) {
    json["shortest_by_length"] = LengthsText(part.shortest_by_length);
  }
  return json;
}

// Reads the token count of each length in `lengths`.
bool ParseTokens(const nlohmann::json& json, const std::map<int32_t, int64_t>& lengths,
                 std::map<int32_t, int64_t>& tokens) {
  return ParseLengths(json.get<std::string>(), tokens) &&
         std::equal(tokens.begin(), tokens.end(), lengths.begin(), lengths.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && a.second >= 2 && a.second <= 2 * kMostLength;
                    });
}

bool ParsePart(const nlohmann::json& json, Contents::OfPart& part) {
  part.examples = WholeNumber(json.at("examples"));
  part.longest = WholeNumber(json.at("longest"));
  if (!ParseLengths(json.at("lengths").get<std::string>(), part.lengths) || part.longest < 2 ||
      part.longest > 2 * kMostLength) {
    return false;
  }
  if (!json.contains("longest_by_length")) return true;  // written by release 0.2.0
  if (!ParseTokens(json.at("longest_by_length"), part.lengths, part.longest_by_length)) {
    return false;
  }
  part.shortest_by_length = part.longest_by_length;
  if (!json.contains("shortest_by_length")) return true;
  part.shortest_by_length.clear();
  return ParseTokens(json.at("shortest_by_length"), part.lengths, part.shortest_by_length);
}

}  // namespace

Contents ContentsOf(const Loaded& loaded) {
  const ExampleSet& set = *loaded.set;
  return {.form = set.form,
          .input_symbols = set.input_symbols,
          .target_symbols = set.target_symbols,
          .same_length = set.same_length,
          .one_size = set.one_size,
          .largest_position = loaded.largest_position,
          .largest_position_line = loaded.largest_position_line,
          .train_bytes = loaded.train_bytes,
          .test_bytes = loaded.test_bytes,
          .training = OfPartOf(set.training),
          .test = OfPartOf(set.test)};
}

bool Agrees(const Contents& said, Contents held) {
  if (said.training.longest_by_length.empty()) {
    for (Contents::OfPart* part : {&held.training, &held.test}) {
      part->longest_by_length.clear();
      part->shortest_by_length.clear();
    }
  }
  held.reading = said.reading;
  held.largest_position_line = said.largest_position_line;
  if (!said.one_size.has_value()) held.one_size.reset();
  return said == held;
}

std::string ToText(const Contents& contents) {
  OrderedJson json = {{"form", kForms[static_cast<size_t>(contents.form)]},
                      {"input_symbols", contents.input_symbols},
                      {"target_symbols", contents.target_symbols},
                      {"same_length", contents.same_length},
                      {"reading", contents.reading},
                      {"train_bytes", contents.train_bytes},
                      {"test_bytes", contents.test_bytes},
                      {"training", PartJson(contents.training)},
                      {"test", PartJson(contents.test)}};
  if (contents.one_size.has_value()) json["one_size"] = *contents.one_size;
  if (contents.largest_position >= 0) {
    json["largest_position"] = contents.largest_position;
    json["largest_position_line"] = contents.largest_position_line;
  }
  return json.dump();
}

absl::StatusOr<FileBytes> ParseFileBytes(absl::string_view text) {
  try {
    const FileBytes bytes = BytesIn(nlohmann::json::parse(text.begin(), text.end()));
    if (IsOfFiles(bytes)) return bytes;
  } catch (const nlohmann::json::exception&) {
  }
  return Refused();
}

absl::StatusOr<Contents> ParseContents(absl::string_view text) {
  const absl::Status refused = Refused();
  // The library throws for missing values and wrong types. No exception leaves this function.
  try {
    const auto json = nlohmann::json::parse(text.begin(), text.end());
    Contents contents;
    const auto form = std::find(kForms.begin(), kForms.end(), json.at("form").get<std::string>());
    if (form == kForms.end()) return refused;
    contents.form = static_cast<Form>(form - kForms.begin());
    const int64_t input_symbols = WholeNumber(json.at("input_symbols"));
    const int64_t target_symbols = WholeNumber(json.at("target_symbols"));
    contents.same_length = json.at("same_length").get<bool>();
    contents.reading = json.contains("reading") ? WholeNumber(json.at("reading")) : 0;
    if (contents.reading < 0 || contents.reading > Options().reading) return refused;
    if (json.contains("one_size")) contents.one_size = json.at("one_size").get<bool>();
    if (json.contains("largest_position")) {
      contents.largest_position = WholeNumber(json.at("largest_position"));
      contents.largest_position_line = json.at("largest_position_line").get<std::string>();
      if (contents.largest_position < 0 || contents.largest_position > kMostPosition) {
        return refused;
      }
    }
    const FileBytes bytes = BytesIn(json);
    contents.train_bytes = bytes.train;
    contents.test_bytes = bytes.test;
    if (!ParsePart(json.at("training"), contents.training) ||
        !ParsePart(json.at("test"), contents.test)) {
      return refused;
    }
    const bool numbers = contents.form == Form::kNumbers;
    for (const int64_t symbols : {input_symbols, target_symbols}) {
      if (symbols < (numbers ? 0 : 1) || symbols > kMostSymbols) return refused;
    }
    contents.input_symbols = static_cast<int32_t>(input_symbols);
    contents.target_symbols = static_cast<int32_t>(target_symbols);
    if (!IsOfFiles(bytes)) return refused;
    return contents;
  } catch (const nlohmann::json::exception&) {
    return refused;
  }
}

std::string ShowLengths(const std::map<int32_t, int64_t>& lengths) {
  constexpr int kMostRanges = 8;
  std::string text;
  int ranges = 0;
  for (auto run = lengths.begin(); run != lengths.end(); ++ranges) {
    auto last = run, next = std::next(run);
    while (next != lengths.end() && next->first == last->first + 1) last = next++;
    if (ranges == kMostRanges) return absl::StrCat(text, ", ... up to ", lengths.rbegin()->first);
    absl::StrAppend(&text, text.empty() ? "" : ", ", run->first);
    if (last != run) absl::StrAppend(&text, "..", last->first);
    run = next;
  }
  return text;
}

}  // namespace lengthwise::tasks::examples
