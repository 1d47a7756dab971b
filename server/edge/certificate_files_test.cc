#include "server/edge/certificate_files.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "rpc/testing/test_certificates.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

class CertificateFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(platform::CreateDirectories(directory_), absl::OkStatus());
    Replace(authority_.Issue("first", absl::Hours(24 * 90)));
    files_ = CertificateFiles::Open({.certificate = directory_ + "/tls.crt",
                                     .key = directory_ + "/tls.key",
                                     .client_authority = authority_.ca()})
                 .value();
  }
  void Replace(const rpc::TestAuthority::Pair& pair) {
    const auto kOver = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(pair.certificate, directory_ + "/tls.crt", kOver);
    std::filesystem::copy_file(pair.key, directory_ + "/tls.key", kOver);
  }
  // Refreshes; returns how often something was put into force.
  int Refresh(const absl::Status& result = absl::OkStatus()) {
    int used = 0;
    files_->Refresh([&](const Encryption&) {
      ++used;
      return result;
    });
    return used;
  }

  const std::string directory_ = testing::TempDir() + "/certificate_files";
  rpc::TestAuthority authority_{testing::TempDir(), "certificate_files"};
  std::unique_ptr<CertificateFiles> files_;
};

TEST_F(CertificateFilesTest, ChangedFilesComeIntoForceOnce) {
  EXPECT_EQ(Refresh(), 0) << "nothing has changed";
  const Encryption before = files_->encryption();
  Replace(authority_.Issue("second", absl::Hours(24 * 90)));
  EXPECT_EQ(Refresh(), 1);
  EXPECT_NE(files_->encryption(), before);
  EXPECT_EQ(files_->encryption().certificate, platform::ReadFile(directory_ + "/tls.crt").value());
  EXPECT_EQ(Refresh(), 0);
}

TEST_F(CertificateFilesTest, WrongFilesLeaveTheOldOnesInForce) {
  const Encryption before = files_->encryption();
  const auto expect_kept = [&] {
    EXPECT_EQ(Refresh(), 0);
    EXPECT_FALSE(files_->usable());
    EXPECT_EQ(files_->encryption(), before);
  };
  // The first of the two files has been replaced.
  const auto second = authority_.Issue("second", absl::Hours(24 * 90));
  std::filesystem::copy_file(second.certificate, directory_ + "/tls.crt",
                             std::filesystem::copy_options::overwrite_existing);
  testing::internal::CaptureStderr();
  expect_kept();
  expect_kept();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the old ones stay: the key"));
  EXPECT_EQ(log.find("the old ones stay"), log.rfind("the old ones stay")) << "once: " << log;

  Replace(authority_.Issue("expired", -absl::Minutes(1)));
  expect_kept();
  std::filesystem::remove(directory_ + "/tls.key");
  expect_kept();
  Replace(second);
  EXPECT_EQ(Refresh(absl::FailedPreconditionError("OpenSSL does not like it")), 1);
  EXPECT_FALSE(files_->usable());
  EXPECT_EQ(files_->encryption(), before);
  EXPECT_EQ(Refresh(), 1);
  EXPECT_TRUE(files_->usable());
}

TEST_F(CertificateFilesTest, ExpiriesAreThoseInForce) {
  const absl::Time server = files_->expiries().server;
  EXPECT_GT(server, absl::Now() + absl::Hours(24 * 89));
  EXPECT_LT(server, absl::Now() + absl::Hours(24 * 91));
  EXPECT_LT(files_->expiries().client_authority, absl::InfiniteFuture());
  Replace(authority_.Issue("expired", -absl::Minutes(1)));
  Refresh();
  EXPECT_EQ(files_->expiries().server, server) << "the expired one is not in force";
}

TEST_F(CertificateFilesTest, CertificateThatExpiresSoonIsAWarning) {
  Replace(authority_.Issue("short", absl::Hours(24 * 13)));
  testing::internal::CaptureStderr();
  Refresh();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("/tls.crt expires at "));
}

}  // namespace
}  // namespace lengthwise::server
