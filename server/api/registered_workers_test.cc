#include "server/api/registered_workers.h"

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(RegisteredWorkers, PrincipalsRegisterLimitedWorkers) {
  RegisteredWorkers workers(2);
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(workers.Register("ada", "a", now).ok());
  EXPECT_TRUE(workers.Register("ada", "b", now + absl::Minutes(30)).ok());
  EXPECT_EQ(workers.Register("ada", "c", now + absl::Minutes(30)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(workers.Register("ada", "b", now + absl::Minutes(30)).ok());
  EXPECT_TRUE(workers.Register("bob", "c", now + absl::Minutes(30)).ok());
  EXPECT_TRUE(workers.Register("ada", "c", now + absl::Minutes(61)).ok());
}

}  // namespace
}  // namespace lengthwise::server
