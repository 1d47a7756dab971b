#include "worker/training/stop_target.h"

#include "absl/strings/str_cat.h"
#include "proto/length_accuracies.h"

namespace lengthwise::worker::training {

std::string ReachedTime(const v1::Training& training, double seconds) {
  if (training.stop_after_seconds() <= 0 || seconds < training.stop_after_seconds()) return "";
  return absl::StrCat("training had taken ", seconds, " s; training.stop_after_seconds is ",
                      training.stop_after_seconds());
}

std::string ReachedAccuracy(const v1::Training& training, int32_t seen_up_to,
                            v1::LengthAccuracies accuracies) {
  if (training.stop_at_accuracy() <= 0) return "";
  SetMeanAccuracies(seen_up_to, accuracies);
  const bool any_unseen = accuracies.has_unseen_accuracy();
  const double mean = any_unseen ? accuracies.unseen_accuracy() : accuracies.seen_accuracy();
  if (mean < training.stop_at_accuracy()) return "";
  return absl::StrCat("the mean accuracy over the ", any_unseen ? "unseen" : "evaluated",
                      " lengths was ", mean, "; training.stop_at_accuracy is ",
                      training.stop_at_accuracy());
}

}  // namespace lengthwise::worker::training
