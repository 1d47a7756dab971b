// Shortens trial labels to the width that a terminal has for them.
#ifndef LENGTHWISE_CLIENT_WATCHING_LABEL_FIT_H_
#define LENGTHWISE_CLIENT_WATCHING_LABEL_FIT_H_

#include <string>
#include <vector>

#include "client/watching/experiment_view.h"

namespace lengthwise::client {

// Shortened labels stay distinct: component names lose letters at their ends or in their middles,
// the longest first. Learning rates and seeds stay whole. Labels that fit stay unchanged.
class LabelFit {
 public:
  // Labels take at most `wanted` terminal columns if they stay distinct, and never more than
  // `most`.
  LabelFit(const std::vector<TrialView>& trials, int wanted, int most);

  // Width of the longest label in terminal columns.
  int width() const { return width_; }
  // Returns the label of one of the trials, at most width() columns wide.
  std::string operator()(const TrialView& trial) const;

 private:
  // The names at one index of all labels.
  struct Column {
    int width = 0;
    // Cuts letters from the middle, because the beginnings alone would not be distinct.
    bool middle = false;
  };

  bool fits_ = true;
  int width_ = 0;
  std::vector<Column> columns_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LABEL_FIT_H_
