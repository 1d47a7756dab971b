#include "catalogue/suggestion.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace lengthwise::catalogue {
namespace {

constexpr size_t kMostListed = 20;
// Shorter words are prefixes of too many names.
constexpr size_t kLeastPrefix = 3;
// Synonyms of catalogue names in papers and other programs.
struct Synonym {
  absl::string_view word;
  absl::string_view name;
};
constexpr Synonym kSynonyms[] = {
    {"rotary", "rope"},
    {"roformer", "rope"},
    {"transformer_xl", "relative"},
    {"sinusoidal", "sin_cos"},
    {"sinus", "sin_cos"},
    {"nope", "none"},
    {"gpt", "causal_decoder"},
    {"reverse_sequence", "reverse_string"},
};
// Distance of unrelated words.
constexpr int kFar = 1'000'000;

std::string Folded(absl::string_view name) {
  std::string folded;
  for (char c : name) {
    if (c != '_' && c != '-') {
      folded.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  return folded;
}

// True if `word`, or a part of it behind '_' or '-', starts with `prefix`.
bool PartStartsWith(absl::string_view word, const std::string& prefix) {
  for (size_t i = 0; i < word.size(); ++i) {
    const bool starts = i == 0 || word[i - 1] == '_' || word[i - 1] == '-';
    if (starts && absl::StartsWith(Folded(word.substr(i)), prefix)) return true;
  }
  return false;
}

// Distance of `given` from `word`, in ascending order: the same letters; a prefix of it (the
// shorter the rest, the nearer); a prefix of one of its parts; at most a third of the letters
// wrong. kFar for all other words.
int Remoteness(absl::string_view given, absl::string_view word) {
  const std::string from = Folded(given);
  const std::string to = Folded(word);
  if (from == to) return 0;
  if (from.size() >= kLeastPrefix) {
    const int rest = static_cast<int>(to.size()) - static_cast<int>(from.size());
    if (absl::StartsWith(to, from)) return 1'000 + rest;
    if (PartStartsWith(word, from)) return 2'000 + rest;
  }
  const int distance = NameDistance(given, word);
  const int letters = static_cast<int>(std::max(from.size(), to.size()));
  // Some letters must be right.
  const bool near = distance <= std::max(1, letters / 3) &&
                    distance < static_cast<int>(std::min(from.size(), to.size()));
  return near ? 3'000 + distance : kFar;
}

}  // namespace

int NameDistance(absl::string_view a_name, absl::string_view b_name) {
  const std::string a = Folded(a_name);
  const std::string b = Folded(b_name);
  // Rows of the dynamic program for prefixes of `a` two back, one back, and now.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

const std::string* Nearest(absl::string_view given, absl::Span<const std::string> accepted) {
  const std::string* nearest = nullptr;
  int least = kFar;
  const auto consider = [&](absl::string_view word, const std::string& name) {
    const int distance = Remoteness(given, word);
    if (distance >= least) return;
    least = distance;
    nearest = &name;
  };
  // A very long word is no misspelling, and the distance would take quadratic time.
  if (given.size() <= 100) {
    for (const std::string& name : accepted) {
      consider(name, name);
      for (const Synonym& synonym : kSynonyms) {
        if (synonym.name == name) consider(synonym.word, name);
      }
    }
  }
  return nearest;
}

std::string Suggestion(absl::string_view given, absl::Span<const std::string> accepted) {
  if (accepted.empty()) return "";
  if (const std::string* nearest = Nearest(given, accepted)) {
    return absl::StrCat("; did you mean \"", *nearest, "\"?");
  }
  std::vector<std::string> sorted(accepted.begin(), accepted.end());
  std::sort(sorted.begin(), sorted.end());
  const bool cut = sorted.size() > kMostListed;
  if (cut) sorted.resize(kMostListed);
  return absl::StrCat("; accepted: ", absl::StrJoin(sorted, ", "), cut ? ", ..." : "");
}

std::string Alternatives(absl::Span<const std::string> all) {
  if (all.size() < 2) return absl::StrJoin(all, "");
  return absl::StrCat(absl::StrJoin(all.first(all.size() - 1), ", "), " or ", all.back());
}

}  // namespace lengthwise::catalogue
