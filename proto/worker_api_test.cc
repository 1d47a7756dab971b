// Workers ignore unknown fields. A new field of a lease therefore requires a new version of the
// worker API, by which the server refuses workers that lack the field (docs/releasing.md).
#include <set>

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "platform/version.h"
#include "proto/worker_service.pb.h"

namespace lengthwise {
namespace {

// Counts the fields of a message and of all this API's messages that it contains.
int CountFields(const google::protobuf::Descriptor* message,
                std::set<const google::protobuf::Descriptor*>& seen) {
  if (message->file()->package() != "lengthwise.v1" || !seen.insert(message).second) return 0;
  int count = message->field_count();
  for (int i = 0; i < message->field_count(); ++i) {
    const google::protobuf::Descriptor* contained = message->field(i)->message_type();
    if (contained != nullptr) count += CountFields(contained, seen);
  }
  return count;
}

TEST(WorkerApiTest, NewFieldOfALeaseRaisesTheVersion) {
  std::set<const google::protobuf::Descriptor*> seen;
  EXPECT_EQ(CountFields(v1::Lease::descriptor(), seen), 75)
      << "The fields of a lease differ from those in version " << platform::kWorkerApiVersion
      << " of the worker API. Raise kWorkerApiVersion (platform/version.h), unless a worker that "
         "ignores the new field still behaves correctly; then update both numbers here.";
  EXPECT_EQ(platform::kWorkerApiVersion, 6);
}

}  // namespace
}  // namespace lengthwise
