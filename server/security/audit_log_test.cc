#include "server/security/audit_log.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "platform/files.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AuditRecord ARecord() {
  return {.time = absl::FromUnixMicros(1'700'000'000'000'001),
          .caller = {.principal = "ada", .role = v1::SUBMITTER, .token_id = "0123456789ab"},
          .peer = "10.0.0.7:41234",
          .method = "lengthwise.v1.ExperimentService/CancelExperiment",
          .resource = "experiments/table1-1"};
}

TEST(AuditLine, DescribesTheCall) {
  EXPECT_EQ(FormatAuditLine(ARecord()),
            R"({"time":"2023-11-14T22:13:20.000001Z","principal":"ada","role":"submitter",)"
            R"("token_id":"0123456789ab","peer":"10.0.0.7:41234",)"
            R"("method":"ExperimentService/CancelExperiment","resource":"experiments/table1-1",)"
            R"("outcome":"OK"})"
            "\n");
  AuditRecord refused = ARecord();
  refused.caller = {};
  refused.peer = "[::1]:7070";
  refused.outcome = absl::UnauthenticatedError("no token");
  refused.suppressed = 3;
  EXPECT_THAT(FormatAuditLine(refused),
              testing::AllOf(HasSubstr(R"("principal":null,"role":null,"token_id":null)"),
                             HasSubstr(R"("peer":"[::1]:7070")"),
                             HasSubstr(R"("outcome":"UNAUTHENTICATED","reason":"no token")"),
                             HasSubstr(R"("suppressed":3)")));
}

TEST(AuditLine, NamesWhoMadeTheToken) {
  AuditRecord record = ARecord();
  record.caller.token_maker = "root";
  EXPECT_THAT(FormatAuditLine(record),
              HasSubstr(R"("token_id":"0123456789ab","token_maker":"root","peer")"));
}

TEST(AuditLine, HasNoRoleForALocalUser) {
  EXPECT_THAT(FormatAuditLine({.caller = {.principal = "uid:0"}}),
              HasSubstr(R"("principal":"uid:0","role":null,"token_id":null)"));
}

TEST(AuditLine, IsOneLineOfAscii) {
  AuditRecord record = ARecord();
  record.resource = "a\n\"b\\\x1b]0;title\x07\x7f\xc2\x9b\xff\xe2\x80\xae";
  record.request_id = std::string("\0\r\n", 3);
  record.outcome = absl::InvalidArgumentError(std::string(5000, '\n'));
  const std::string line = FormatAuditLine(record);
  for (const char c : line.substr(0, line.size() - 1)) {
    EXPECT_TRUE(c >= 0x20 && c < 0x7f) << static_cast<int>(c);
  }
  EXPECT_EQ(line.back(), '\n');
  EXPECT_LT(line.size(), 3000u);
  EXPECT_THAT(nlohmann::json::parse(line)["resource"].get<std::string>(),
              HasSubstr("a\n\"b\\\x1b]"));
}

TEST(AuditLine, StripsPastedSecrets) {
  const std::string secret(64, 'e');
  AuditRecord record = ARecord();
  record.resource = "lw_0123456789ab_" + secret;
  record.request_id = secret;
  record.outcome = absl::NotFoundError("no " + secret);
  record.stated_reason = "Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzYW0ifQ.c2lnbmF0dXJl, see";
  const std::string line = FormatAuditLine(record);
  EXPECT_THAT(line, Not(HasSubstr(std::string(20, 'e'))));
  EXPECT_THAT(line, HasSubstr("lw_0123456789ab_[64 hexadecimal digits]"));
  EXPECT_THAT(line, HasSubstr("\"Bearer [JWT], see\""));
}

class AuditLogTest : public testing::Test {
 protected:
  AuditLogTest()
      : directory_(testing::TempDir() + "/" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_(directory_ + "/audit.log") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    const std::string text = platform::ReadFile(path_, int64_t{64} << 20).value_or("");
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const std::string directory_;
  const std::string path_;
};

TEST_F(AuditLogTest, HasEveryLineAfterACleanStop) {
  {
    AuditLog log({.file = {.path = path_}});
    for (int call = 0; call < 5000; ++call) {
      AuditRecord record = ARecord();
      record.resource = absl::StrCat(call);
      log.Record(std::move(record));
    }
  }
  const std::vector<nlohmann::json> lines = Lines();
  ASSERT_EQ(lines.size(), 5000u);
  for (int call = 0; call < 5000; ++call) EXPECT_EQ(lines[call]["resource"], absl::StrCat(call));
}

TEST_F(AuditLogTest, KeepsItsLinesWhileTheDiskIsFull) {
  std::filesystem::create_symlink("/dev/full", path_);
  testing::internal::CaptureStderr();
  {
    AuditLog log({.file = {.path = path_}, .retry = absl::Milliseconds(1)});
    for (int call = 0; call < 10'007; ++call) log.Record(ARecord());
    EXPECT_EQ(log.counts().lost, 7);
    ASSERT_TRUE(Eventually([&] { return log.is_failing(); }));
    std::filesystem::create_symlink("file", path_ + ".new");
    std::filesystem::rename(path_ + ".new", path_);
    ASSERT_TRUE(Eventually([&] { return log.counts().written == 10'000; }));
    log.Record(ARecord());
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const std::vector<std::string> parts = absl::StrSplit(said, "the audit log cannot be written");
  EXPECT_EQ(parts.size(), 2u) << said;
  EXPECT_THAT(said, HasSubstr("No space left on device"));
  EXPECT_THAT(said, HasSubstr("written again; lines lost: 7"));
  const std::vector<nlohmann::json> lines = Lines();
  ASSERT_EQ(lines.size(), 10'002u);
  const auto says_loss = [](const nlohmann::json& line) {
    const auto reason = line.find("reason");
    return reason != line.end() && reason->is_string() &&
           absl::StrContains(reason->get<std::string>(), "7 lines were lost");
  };
  EXPECT_EQ(absl::c_count_if(lines, says_loss), 1);
}

TEST_F(AuditLogTest, ReportsLostLinesAtTheStop) {
  testing::internal::CaptureStderr();
  { AuditLog({.file = {.path = "/dev/full"}}).Record(ARecord()); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("lost 1 lines of the audit log"));
}

}  // namespace
}  // namespace lengthwise::server
