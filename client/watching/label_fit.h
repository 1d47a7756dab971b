// Labels of trials in the room that a terminal has for them.
#ifndef LENGTHWISE_CLIENT_WATCHING_LABEL_FIT_H_
#define LENGTHWISE_CLIENT_WATCHING_LABEL_FIT_H_

#include <string>
#include <vector>

#include "client/watching/experiment_view.h"

namespace lengthwise::client {

// Shortens labels so that they fit and still tell trials apart: names of components lose letters at
// their ends or in their middles, the longest first; learning rates and seeds stay whole. Labels
// that fit stay as they are.
class LabelFit {
 public:
  // Labels take at most `wanted` columns of a terminal if that leaves them different, and never
  // more than `most`.
  LabelFit(const std::vector<TrialView>& trials, int wanted, int most);

  // Columns that the longest label takes.
  int width() const { return width_; }
  // The label of one of the trials; at most width() columns.
  std::string operator()(const TrialView& trial) const;

 private:
  // A place in the labels' names.
  struct Column {
    int width = 0;
    // Letters are cut out of the middle, since the beginnings alone are the same.
    bool middle = false;
  };

  bool fits_ = true;
  int width_ = 0;
  std::vector<Column> columns_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LABEL_FIT_H_
