// What the trials of a pack share: everything of their specifications but seeds and learning rates,
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

// Members that go through the kernels together.
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

  // What this one trains on and evaluates, one of the two by the task's kind; the other is null.
  std::unique_ptr<data::Examples> examples;
  std::unique_ptr<data::TextExamples> text;
  Choice network;
  Choice encoding;
  Choice optimizer;
  // Of the catalogue; lives forever.
  const models::ScheduleEntry* schedule = nullptr;
  catalogue::Parameters schedule_parameters;
  data::BatchSchedule batches{v1::Training()};
  // Size of the network, and most tokens of any sequence it will see.
  models::EncodingContext size;
  v1::Training training;
  v1::Evaluation evaluation;

  // The examples or the text.
  data::ExampleSource& source() const;

  // Whether all lengths of the final evaluation have sequences of whole numbers, too, which it then
  // asks for the accuracy by rounding.
  bool HasWholeNumbers() const;

  // What a point of the loss curve says of the batch: the length of its inputs, or the tokens of
  // text's sequences.
  int64_t InputTokensOfStep(int64_t step) const;

  // Of a member with this learning rate.
  std::unique_ptr<models::Schedule> CreateSchedule(double learning_rate) const;
};

// The server validated the specification already, perhaps with another version of the catalogues;
// what this worker cannot run comes back as one INVALID_ARGUMENT that names every field.
//
// `fetch` brings files of examples; a task that is one cannot be made without. Its errors come back
// as they are.
absl::StatusOr<Blueprint> MakeBlueprint(const v1::TrialSpecification& specification,
                                        const data::FetchFile& fetch = nullptr);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_BLUEPRINT_H_
