#include "rpc/certificates.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/testing/test_certificates.h"

namespace lengthwise::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CertificatesTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
    return path;
  }

  TestAuthority authority_{testing::TempDir(), "house"};
  const TestAuthority::Pair pair_ = authority_.Issue("server");
};

TEST_F(CertificatesTest, ReadsPairAndAuthority) {
  const auto certificate = ReadCertificate(pair_.certificate, absl::Now());
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_THAT(*certificate, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_TRUE(ReadPrivateKey(pair_.key, *certificate).ok());
  EXPECT_TRUE(ReadAuthorities(authority_.ca()).ok());
}

TEST_F(CertificatesTest, ExpiredCertificateIsNamedWithItsDates) {
  const absl::Status over =
      ReadCertificate(pair_.certificate, absl::Now() + absl::Hours(2)).status();
  EXPECT_EQ(over.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(over.message()),
              AllOf(HasSubstr(pair_.certificate + " expired at 20"), HasSubstr("renew it")));
  const absl::Status early =
      ReadCertificate(pair_.certificate, absl::Now() - absl::Hours(2)).status();
  EXPECT_THAT(std::string(early.message()), HasSubstr("is valid from 20"));
}

TEST_F(CertificatesTest, MismatchedAndReadableKeysAreRefused) {
  const std::string certificate = ReadCertificate(pair_.certificate, absl::Now()).value();
  const absl::Status other = ReadPrivateKey(authority_.Issue("other").key, certificate).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("belongs to another certificate"));
  chmod(pair_.key.c_str(), 0644);
  const absl::Status open = ReadPrivateKey(pair_.key, certificate).status();
  EXPECT_THAT(std::string(open.message()), HasSubstr("chmod 600 " + pair_.key));
}

TEST_F(CertificatesTest, FileThatNeverEndsIsRefused) {
  const std::string pipe = testing::TempDir() + "/pipe.pem";
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);
  for (const absl::Status& status :
       {ReadCertificate(pipe, absl::Now()).status(), ReadPrivateKey(pipe, "").status(),
        ReadAuthorities(pipe).status()}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("it is a pipe"));
  }
}

TEST_F(CertificatesTest, FileThatIsNotPemIsNamed) {
  const std::string certificate = ReadCertificate(pair_.certificate, absl::Now()).value();
  const std::string nonsense = File("nonsense.pem", "-----BEGIN NOTHING-----\n");
  for (const absl::Status& status :
       {ReadCertificate(nonsense, absl::Now()).status(), ReadAuthorities(nonsense).status(),
        ReadPrivateKey(nonsense, certificate).status(),
        ReadCertificate(File("empty.pem", ""), absl::Now()).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_EQ(ReadAuthorities(nonsense + ".none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CertificatesTest, KeyWithPassphraseIsRefusedWithoutPrompt) {
  const std::string path = testing::TempDir() + "/protected.key";
  const std::string command = "openssl pkey -aes256 -passout pass:swordfish -in " + pair_.key +
                              " -out " + path + " && chmod 600 " + path;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const absl::Status status =
      ReadPrivateKey(path, ReadCertificate(pair_.certificate, absl::Now()).value()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a passphrase protects the key"));
}

}  // namespace
}  // namespace lengthwise::rpc
