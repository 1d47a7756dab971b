#include "worker/training/stop_target.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/training/mean_accuracy.h"

namespace lengthwise::worker::training {

std::string ReachedTime(const v1::Training& training, double seconds) {
  if (training.stop_after_seconds() <= 0 || seconds < training.stop_after_seconds()) return "";
  return absl::StrCat("training had taken ", seconds, " s; training.stop_after_seconds is ",
                      training.stop_after_seconds());
}

std::string ReachedAccuracy(const v1::Training& training, int32_t seen_up_to,
                            const v1::LengthAccuracies& accuracies) {
  if (training.stop_at_accuracy() <= 0) return "";
  absl::string_view lengths = "unseen";
  double mean = UnseenAccuracy(accuracies, seen_up_to);
  if (mean < 0) {
    lengths = "evaluated";
    mean = SeenAccuracy(accuracies, seen_up_to);
  }
  if (mean < training.stop_at_accuracy()) return "";
  return absl::StrCat("the mean accuracy over the ", lengths, " lengths was ", mean,
                      "; training.stop_at_accuracy is ", training.stop_at_accuracy());
}

}  // namespace lengthwise::worker::training
