#include "client/watching/link_state.h"

#include "absl/strings/str_cat.h"
#include "client/display/numbers.h"

namespace lengthwise::client {
namespace {

constexpr absl::Duration kNoteBack = absl::Seconds(30);

}  // namespace

bool LinkState::Update(const absl::Status& connection, absl::Time now) {
  const bool was_lost = lost();
  connection_ = connection;
  if (was_lost == lost()) return false;
  (lost() ? lost_ : back_) = now;
  return true;
}

std::string LinkState::Note(absl::Time now) const {
  if (lost()) {
    return absl::StrCat("connection lost ", FormatClock(now - lost_), " ago, trying again");
  }
  if (back_ == absl::InfinitePast() || now - back_ > kNoteBack) return "";
  return absl::StrCat("connected again after ", FormatClock(back_ - lost_));
}

}  // namespace lengthwise::client
