// The specification that all trials of a pack share (everything except seeds and learning rates),
// checked against the catalogues. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_BLUEPRINT_H_
#define LENGTHWISE_WORKER_TRAINING_BLUEPRINT_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "catalogue/entry.h"
#include "models/encodings/catalogue.h"
#include "models/schedules/catalogue.h"
#include "proto/specification.pb.h"
#include "worker/data/batch_schedule.h"
#include "worker/data/examples.h"
#include "worker/data/file_examples.h"
#include "worker/data/text_examples.h"

namespace lengthwise::worker::training {

// A contiguous range of a pack's members that kernels compute together.
struct MemberRange {
  int64_t first = 0;
  int64_t count = 0;

  friend auto operator<=>(const MemberRange&, const MemberRange&) = default;
};

struct Blueprint {
  struct Choice {
    std::string name;
    catalogue::Parameters parameters;
  };

  // The source of training and evaluation data. The task's kind determines which of the two is set;
  // the other is null.
  std::unique_ptr<data::Examples> examples;
  std::unique_ptr<data::TextExamples> text;
  Choice network;
  // Path of the archive of the network `python`; empty for others.
  std::string network_archive;
  Choice encoding;
  Choice optimizer;
  // Catalogue entry with static lifetime.
  const models::ScheduleEntry* schedule = nullptr;
  catalogue::Parameters schedule_parameters;
  data::BatchSchedule batches{v1::Training()};
  // Size of the network, and the largest number of tokens in any of its sequences.
  models::EncodingContext size;
  v1::Training training;
  v1::Evaluation evaluation;

  // The examples or the text.
  data::ExampleSource& source() const;

  // Returns true if every length of the final evaluation also has sequences of whole numbers, which
  // the evaluation then uses for the accuracy by rounding.
  bool HasWholeNumbers() const;

  // Length to report with a point of the loss curve: the batch's input length or, for text, the
  // tokens of its sequences.
  int64_t InputTokensOfStep(int64_t step) const;

  // Creates the schedule of a member with this learning rate.
  std::unique_ptr<models::Schedule> CreateSchedule(double learning_rate) const;
};

// Checks again what the catalogues decide, because the server may have another version of them.
// Takes other values as they are: every server checks them (specification/checks.h). One
// INVALID_ARGUMENT names every field that this worker cannot run.
//
// `fetch` provides data files and is required if task or network is one. Its errors are returned
// unchanged.
absl::StatusOr<Blueprint> MakeBlueprint(const v1::TrialSpecification& specification,
                                        const data::FetchFile& fetch = nullptr);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_BLUEPRINT_H_
