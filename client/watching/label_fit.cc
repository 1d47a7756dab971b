#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/display/terminal.h"
#include "client/watching/experiment_view.h"

namespace lengthwise::client {
namespace {

// A name with fewer letters is unreadable.
constexpr int kLeastLetters = 5;

std::string Shortened(const std::string& name, int width, bool middle) {
  const auto bytes = static_cast<int>(name.size());
  // Names are ASCII (specification/components.cc). Other text can only be cut safely at its end.
  const bool is_ascii = DisplayWidth(name) == bytes;
  if (!middle || !is_ascii || bytes <= width) return Truncate(name, width);
  const int tail = (width - 1) / 2;
  return absl::StrCat(name.substr(0, static_cast<size_t>(width - 1 - tail)), "…",
                      name.substr(static_cast<size_t>(bytes - tail)));
}

bool StayDifferent(const std::set<std::string>& names, int width, bool middle) {
  std::set<std::string> shortened;
  for (const std::string& name : names) shortened.insert(Shortened(name, width, middle));
  return shortened.size() == names.size();
}

}  // namespace

LabelFit::LabelFit(const std::vector<TrialView>& trials, int wanted, int most) {
  size_t columns = 0;
  int numbers = 0;
  for (const TrialView& trial : trials) {
    width_ = std::max(width_, DisplayWidth(trial.label));
    columns = std::max(columns, trial.parts.names.size());
    numbers = std::max(numbers, DisplayWidth(trial.parts.numbers));
  }
  if (width_ <= wanted) return;
  fits_ = false;
  std::vector<std::set<std::string>> names(columns);
  columns_.resize(columns);
  for (const TrialView& trial : trials) {
    for (size_t c = 0; c < trial.parts.names.size(); ++c) {
      names[c].insert(trial.parts.names[c]);
      columns_[c].width = std::max(columns_[c].width, DisplayWidth(trial.parts.names[c]));
    }
  }
  const auto total = [&] {
    int sum = numbers + static_cast<int>(columns) - (numbers > 0 ? 0 : 1);
    for (const Column& column : columns_) sum += column.width;
    return sum;
  };
  // Narrows the widest column that can still shrink by one character.
  const auto shrink = [&](bool stay_different) {
    Column* widest = nullptr;
    Column shorter;
    for (size_t c = 0; c < columns; ++c) {
      Column next{.width = columns_[c].width - 1, .middle = columns_[c].middle};
      if (next.width < (stay_different ? kLeastLetters : 1)) continue;
      if (stay_different && !StayDifferent(names[c], next.width, next.middle)) {
        next.middle = true;
        if (!StayDifferent(names[c], next.width, next.middle)) continue;
      }
      if (widest != nullptr && columns_[c].width <= widest->width) continue;
      widest = &columns_[c];
      shorter = next;
    }
    if (widest == nullptr) return false;
    *widest = shorter;
    return true;
  };
  while (total() > wanted && shrink(/*stay_different=*/true)) continue;
  while (total() > most && shrink(/*stay_different=*/false)) continue;
  width_ = std::min(total(), most);
}

std::string LabelFit::operator()(const TrialView& trial) const {
  if (fits_) return trial.label;
  std::string label;
  for (size_t c = 0; c < trial.parts.names.size(); ++c) {
    absl::StrAppend(&label, c > 0 ? " " : "",
                    PadRight(Shortened(trial.parts.names[c], columns_[c].width, columns_[c].middle),
                             columns_[c].width));
  }
  if (!trial.parts.numbers.empty()) {
    absl::StrAppend(&label, label.empty() ? "" : " ", trial.parts.numbers);
  }
  return Truncate(label, width_);
}

}  // namespace lengthwise::client
