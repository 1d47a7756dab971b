#include "worker/connection/worker_id.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

TEST(WorkerId, NamesHostDeviceAndProcess) {
  EXPECT_EQ(MakeWorkerId("n07", "cuda:0", 4711), "n07-cuda0-4711");
  EXPECT_EQ(MakeWorkerId("Node_3.cluster.example", "cpu", 1), "node-3-cpu-1");
  EXPECT_EQ(MakeWorkerId("", "cpu", 1), "worker-cpu-1");
}

TEST(WorkerId, IsAlwaysValid) {
  for (const std::string& host :
       {std::string(200, 'x'), std::string("\xc3\xa4 b"), std::string(".")}) {
    const std::string id = MakeWorkerId(host, "cuda:7 (strange, and far too long a name)", 4194304);
    EXPECT_TRUE(ValidateWorkerId(id).ok()) << id;
    EXPECT_TRUE(id.ends_with("-4194304")) << id;
  }
}

TEST(WorkerId, RejectsWhatTheServerRejects) {
  EXPECT_TRUE(ValidateWorkerId(std::string(60, 'a')).ok());
  EXPECT_FALSE(ValidateWorkerId(std::string(61, 'a')).ok());
  EXPECT_FALSE(ValidateWorkerId("").ok());
  EXPECT_EQ(ValidateWorkerId("Node 1").message(),
            "worker id \"Node 1\": must have 1 to 60 of the characters a-z, 0-9 and -");
}

}  // namespace
}  // namespace lengthwise::worker
