#include "server/flags.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

std::variant<Flags, int> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "lengthwise_server");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data());
}

// The error of a wrong command line.
std::string Refusal(const std::vector<const char*>& arguments) {
  testing::internal::CaptureStderr();
  const std::variant<Flags, int> result = Parse(arguments);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::holds_alternative<int>(result) && std::get<int>(result) == 2);
  return text;
}

TEST(Flags, DefaultsAreLocal) {
  setenv("XDG_DATA_HOME", "/somewhere", 1);
  const Flags flags = std::get<Flags>(Parse({}));
  EXPECT_EQ(flags.listen, "127.0.0.1:7070");
  EXPECT_EQ(flags.metrics_listen, "127.0.0.1:9464");
  EXPECT_EQ(flags.core.data_dir, "/somewhere/lengthwise");
  EXPECT_EQ(flags.core.scheduler.lease_duration, absl::Seconds(30));
  EXPECT_EQ(flags.core.scheduler.min_run, absl::Minutes(1));
  EXPECT_FALSE(flags.exit_with_parent);
  EXPECT_FALSE(flags.core.release_leases);
}

TEST(Flags, HomeDirectoryIsTheDefaultWithoutXdg) {
  unsetenv("XDG_DATA_HOME");
  setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(std::get<Flags>(Parse({})).core.data_dir, "/home/ada/.local/share/lengthwise");
}

TEST(Flags, AreParsed) {
  const Flags flags = std::get<Flags>(
      Parse({"--listen", "127.0.0.1:0", "--metrics_listen", "", "--data_dir=/d", "--max_trials=7",
             "--lease_duration=2s", "--heartbeat_interval=200ms", "--ready_file", "/r",
             "--exit_with_parent", "--private", "--restore=/b", "--release_leases",
             "--retention=90d", "--max_owner_bytes=5"}));
  EXPECT_EQ(flags.listen, "127.0.0.1:0");
  EXPECT_EQ(flags.metrics_listen, "");
  EXPECT_EQ(flags.core.data_dir, "/d");
  EXPECT_EQ(flags.core.max_trials, 7);
  EXPECT_EQ(flags.core.scheduler.lease_duration, absl::Seconds(2));
  EXPECT_EQ(flags.core.heartbeat_interval, absl::Milliseconds(200));
  EXPECT_EQ(flags.ready_file, "/r");
  EXPECT_EQ(flags.core.restore_from, "/b");
  EXPECT_TRUE(flags.core.release_leases);
  EXPECT_EQ(flags.core.retention, absl::Hours(24 * 90));
  EXPECT_EQ(flags.core.max_owner_bytes, 5);
  EXPECT_EQ(std::get<Flags>(Parse({"--retention=forever"})).core.retention, absl::ZeroDuration());
  EXPECT_TRUE(flags.exit_with_parent);
  EXPECT_TRUE(flags.is_private);
}

TEST(Flags, PrivateServerHasNoMetrics) {
  EXPECT_EQ(std::get<Flags>(Parse({"--private"})).metrics_listen, "");
  EXPECT_THAT(Refusal({"--private", "--tls_certificate=c", "--tls_key=k"}),
              HasSubstr("contradict"));
}

TEST(Flags, IdentityProviderNeedsIssuerAudienceAndSafeKeys) {
  const Flags flags =
      std::get<Flags>(Parse({"--oidc_issuer=https://id.example.org", "--oidc_audience=lw",
                             "--oidc_keys=/keys.json", "--oidc_role_claim=groups"}));
  EXPECT_EQ(flags.oidc.issuer, "https://id.example.org");
  EXPECT_EQ(flags.oidc.audience, "lw");
  EXPECT_EQ(flags.oidc.keys, "/keys.json");
  EXPECT_EQ(flags.oidc.principal_claim, "sub");
  EXPECT_EQ(flags.oidc.role_claim, "groups");
  const std::vector<const char*> all = {"--oidc_issuer=i", "--oidc_audience=a", "--oidc_keys=k"};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_THAT(Refusal({all[i]}), HasSubstr("go together"));
    EXPECT_THAT(Refusal({all[i], all[(i + 1) % 3]}), HasSubstr("go together"));
  }
  for (const char* keys : {"--oidc_keys=http://id.example.org/keys",
                           "--oidc_keys=http://127.0.0.1:80@id.example.org/keys"}) {
    EXPECT_THAT(Refusal({all[0], all[1], keys}), HasSubstr("is plain text"));
  }
  for (const char* keys :
       {"--oidc_keys=https://id.example.org/keys", "--oidc_keys=http://127.0.0.1:8080/keys",
        "--oidc_keys=http://localhost/keys"}) {
    EXPECT_TRUE(std::holds_alternative<Flags>(Parse({all[0], all[1], keys}))) << keys;
  }
}

TEST(Flags, InvalidFlagsAreNamed) {
  EXPECT_THAT(Refusal({"--listne=1"}), HasSubstr("did you mean \"--listen\"?"));
  EXPECT_THAT(Refusal({"--listen=here"}), HasSubstr("--listen: got \"here\", expected HOST:PORT"));
  EXPECT_THAT(Refusal({"--listen=127.0.0.1:99999"}), HasSubstr("expected HOST:PORT"));
  EXPECT_THAT(Refusal({"--max_trials=0"}), HasSubstr("--max_trials"));
  EXPECT_THAT(Refusal({"--retention=3"}),
              HasSubstr("got \"3\", expected a time such as 90d or 12h, or forever"));
  EXPECT_THAT(Refusal({"--log_level=debug"}), HasSubstr("--log_level"));
  EXPECT_THAT(Refusal({"--lease_duration=fast"}),
              HasSubstr("--lease_duration: got \"fast\", expected a duration"));
  EXPECT_THAT(Refusal({"--lease_duration=1s", "--heartbeat_interval=600ms"}),
              HasSubstr("at most half of --lease_duration"));
}

TEST(Flags, PublicPlainTextAddressNeedsItsFlag) {
  EXPECT_THAT(Refusal({"--listen=0.0.0.0:7070"}), HasSubstr("--insecure_api"));
  EXPECT_THAT(Refusal({"--metrics_listen=[::]:9464"}), HasSubstr("--insecure_metrics"));
  for (const char* allowed : {"--insecure_api=plain_text", "--insecure_api=open"}) {
    EXPECT_EQ(std::get<Flags>(Parse({"--listen=0.0.0.0:7070", allowed})).listen, "0.0.0.0:7070");
  }
  EXPECT_TRUE(
      std::holds_alternative<Flags>(Parse({"--metrics_listen=[::]:9464", "--insecure_metrics"})));
}

TEST(Flags, OneInsecureFlagAllowsNothingElse) {
  EXPECT_THAT(Refusal({"--listen=0.0.0.0:7070", "--insecure_metrics", "--insecure_s3"}),
              HasSubstr("--insecure_api"));
  EXPECT_THAT(Refusal({"--metrics_listen=[::]:9464", "--insecure_api=open", "--insecure_s3"}),
              HasSubstr("--insecure_metrics"));
  EXPECT_THAT(Refusal({"--artifacts=s3://bucket", "--s3_endpoint=http://10.0.0.1:9000",
                       "--insecure_api=open", "--insecure_metrics"}),
              HasSubstr("--insecure_s3"));
  EXPECT_THAT(Refusal({"--insecure_api=plain_text", "--tls_certificate=a", "--tls_key=b"}),
              HasSubstr("contradict"));
}

TEST(Flags, PlainTextObjectStoreNeedsItsFlag) {
  const char* const place = "--artifacts=s3://bucket/checkpoints";
  EXPECT_THAT(Refusal({place, "--s3_endpoint=http://store.example.org"}),
              HasSubstr("--insecure_s3"));
  EXPECT_THAT(Refusal({place, "--s3_endpoint=http://10.0.0.1:9000"}), HasSubstr("--insecure_s3"));
  for (const char* allowed :
       {"--s3_endpoint=https://store.example.org", "--s3_endpoint=http://127.0.0.1:9000",
        "--s3_endpoint=http://[::1]:9", "--s3_endpoint=http://localhost"}) {
    EXPECT_TRUE(std::holds_alternative<Flags>(Parse({place, allowed}))) << allowed;
  }
  EXPECT_TRUE(std::holds_alternative<Flags>(
      Parse({place, "--s3_endpoint=http://10.0.0.1:9000", "--insecure_s3"})));
}

// The command line of a process can be read by every user of the machine.
TEST(Flags, ObjectStoresSecretIsInTheEnvironment) {
  setenv("AWS_ACCESS_KEY_ID", "key", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  setenv("AWS_SESSION_TOKEN", "token", 1);
  setenv("AWS_ENDPOINT_URL", "https://store.example.org", 1);
  setenv("AWS_REGION", "here", 1);
  const S3Options s3 = std::get<Flags>(Parse({"--artifacts=s3://bucket"})).core.s3;
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                           "AWS_ENDPOINT_URL", "AWS_REGION"}) {
    unsetenv(name);
  }
  EXPECT_EQ(s3.credentials.access_key_id, "key");
  EXPECT_EQ(s3.credentials.secret_access_key, "secret");
  EXPECT_EQ(s3.credentials.session_token, "token");
  EXPECT_EQ(s3.endpoint, "https://store.example.org");
  EXPECT_EQ(s3.region, "here");
}

TEST(Flags, PublicEncryptedAddressNeedsNoFlag) {
  const Flags flags = std::get<Flags>(
      Parse({"--listen=0.0.0.0:7070", "--tls_certificate=c.pem", "--tls_key=k.pem",
             "--tls_client_ca=a.pem", "--max_calls_per_second=0", "--max_streams=7"}));
  EXPECT_EQ(flags.tls_certificate, "c.pem");
  EXPECT_EQ(flags.tls_key, "k.pem");
  EXPECT_EQ(flags.tls_client_ca, "a.pem");
  EXPECT_EQ(flags.quotas.calls_per_second, 0);
  EXPECT_EQ(flags.quotas.streams, 7);
  // Its metrics are still plain text.
  EXPECT_THAT(Refusal({"--metrics_listen=0.0.0.0:1", "--tls_certificate=c", "--tls_key=k"}),
              HasSubstr("the metrics are plain text"));
}

TEST(Flags, HalfOfAPairIsRefused) {
  EXPECT_THAT(Refusal({"--tls_certificate=c"}), HasSubstr("go together"));
  EXPECT_THAT(Refusal({"--tls_key=k"}), HasSubstr("go together"));
  EXPECT_THAT(Refusal({"--tls_client_ca=a"}), HasSubstr("--tls_client_ca needs"));
  EXPECT_THAT(Refusal({"--max_streams=-1"}), HasSubstr("--max_streams"));
}

TEST(Flags, HelpIsNotAnError) {
  testing::internal::CaptureStdout();
  const std::variant<Flags, int> result = Parse({"--help"});
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("--data_dir"));
  EXPECT_EQ(std::get<int>(result), 0);
}

}  // namespace
}  // namespace lengthwise::server
