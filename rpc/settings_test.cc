#include "rpc/settings.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::rpc {
namespace {

using ::testing::HasSubstr;

class SettingsTest : public testing::Test {
 protected:
  SettingsTest()
      : home_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()),
        file_(home_ + "/.config/lengthwise/config.yaml") {
    std::filesystem::remove_all(home_);
    std::filesystem::create_directories(home_ + "/.config/lengthwise");
    variables_["HOME"] = home_;
  }

  absl::StatusOr<Settings> Resolve(const std::map<std::string, std::string>& flags = {}) {
    return ResolveSettings(flags, [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  // Returns the error for a file with this text.
  std::string Refusal(const std::string& text) {
    std::ofstream(file_) << text;
    const absl::Status status = Resolve().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  }

  const std::string home_;
  const std::string file_;
  std::map<std::string, std::string> variables_;
};

TEST_F(SettingsTest, UnsetSettingsHaveDefaults) {
  const Settings settings = Resolve().value();
  EXPECT_EQ(settings.file, "");
  EXPECT_EQ(settings.Value("server"), "127.0.0.1:7070");
  EXPECT_EQ(settings["server"].origin, "default");
  EXPECT_EQ(settings.Value("token_file"), "");
}

TEST_F(SettingsTest, DirectoryOfRunsIsForAnyServer) {
  std::ofstream(file_) << "server: head:7070\ntoken_file: /token\nruns_dir: ~/runs\n";
  const Settings settings = Resolve({{"server", "other:7070"}}).value();
  EXPECT_EQ(settings.Value("token_file"), "");
  EXPECT_EQ(settings.Value("runs_dir"), home_ + "/runs");
  variables_["LENGTHWISE_RUNS_DIR"] = "/scratch";
  EXPECT_EQ(Resolve().value().Value("runs_dir"), "/scratch");
  variables_["LENGTHWISE_RUNS_DIR"] = "~/scratch";
  EXPECT_EQ(Resolve().value().Value("runs_dir"), home_ + "/scratch");
}

TEST_F(SettingsTest, CommandLineBeatsEnvironmentBeatsFile) {
  std::ofstream(file_) << "token_file: /file\ntls_ca: /file\ntls_key: /file\n";
  variables_["LENGTHWISE_TOKEN_FILE"] = "/environment";
  variables_["LENGTHWISE_TLS_CA"] = "/environment";
  variables_["LENGTHWISE_TLS_KEY"] = "";  // counts as unset
  const Settings settings = Resolve({{"token_file", "/flag"}}).value();
  EXPECT_EQ(settings.Value("token_file"), "/flag");
  EXPECT_EQ(settings["token_file"].origin, "--token_file");
  EXPECT_EQ(settings.Value("tls_ca"), "/environment");
  EXPECT_EQ(settings["tls_ca"].origin, "$LENGTHWISE_TLS_CA");
  EXPECT_EQ(settings.Value("tls_key"), "/file");
  EXPECT_EQ(settings["tls_key"].origin, file_);
}

TEST_F(SettingsTest, FilePathsResolveAgainstFileAndHome) {
  std::ofstream(file_) << "token_file: ~/ada.token\ntls_ca: ca.pem\ntls_key: /etc/key.pem\n";
  const Settings settings = Resolve().value();
  EXPECT_EQ(settings.Value("token_file"), home_ + "/ada.token");
  EXPECT_EQ(settings.Value("tls_ca"), home_ + "/.config/lengthwise/ca.pem");
  EXPECT_EQ(settings.Value("tls_key"), "/etc/key.pem");
  std::ofstream(file_) << "tls_ca: system\n";
  EXPECT_EQ(Resolve().value().Value("tls_ca"), "system");
}

// Otherwise the token would be sent to any server whose address a user types.
TEST_F(SettingsTest, FilesTokenIsOnlySentToFilesServer) {
  std::ofstream(file_) << "server: head:7070\ntoken_file: /ada.token\ntls_ca: /ca.pem\n";
  EXPECT_EQ(Resolve().value().Value("token_file"), "/ada.token");
  EXPECT_EQ(Resolve({{"server", "head:7070"}}).value().Value("token_file"), "/ada.token");
  const Settings other = Resolve({{"server", "127.0.0.1:7070"}}).value();
  EXPECT_EQ(other.Value("token_file"), "");
  EXPECT_EQ(other.Value("tls_ca"), "");
  EXPECT_THAT(other["token_file"].origin, HasSubstr("for head:7070 only"));
  // A token given for that server is used.
  EXPECT_EQ(Resolve({{"server", "127.0.0.1:7070"}, {"token_file", "/b.token"}})
                .value()
                .Value("token_file"),
            "/b.token");
}

TEST_F(SettingsTest, FileErrorsNameTheirLine) {
  EXPECT_EQ(Refusal("server: head:7070\ntoken_fiel: /a\n"),
            file_ + ":2: unknown setting \"token_fiel\"; did you mean \"token_file\"?");
  EXPECT_THAT(Refusal("password: x\n"),
              HasSubstr("accepted: runs_dir, server, tls_ca, tls_certificate, tls_key, "
                        "tls_server_name, token_file"));
  EXPECT_THAT(Refusal("server: [a, b]\n"), HasSubstr("server is not one value"));
  EXPECT_THAT(Refusal("server: a:1\nserver: b:1\n"), HasSubstr("server is set twice"));
  EXPECT_THAT(Refusal("- server\n"), HasSubstr("is not a list of settings"));
  EXPECT_THAT(Refusal("server: [unfinished\n"), HasSubstr(file_ + ":"));
  EXPECT_THAT(Refusal("server: nowhere\n"), HasSubstr("is not HOST:PORT"));
  std::ofstream(file_) << "# nothing yet\n";
  EXPECT_TRUE(Resolve().ok());
}

TEST_F(SettingsTest, FileThatNeverEndsIsRefused) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(std::string(Resolve().status().message()), HasSubstr("it is a pipe"));
  variables_["LENGTHWISE_CONFIG"] = "/dev/zero";
  EXPECT_THAT(std::string(Resolve().status().message()), HasSubstr("it is a device"));
}

TEST_F(SettingsTest, NamedFileMustExistAndEmptyNameMeansNone) {
  variables_["LENGTHWISE_CONFIG"] = home_ + "/none.yaml";
  EXPECT_EQ(Resolve().status().code(), absl::StatusCode::kNotFound);
  std::ofstream(file_) << "server: head:7070\n";
  variables_["LENGTHWISE_CONFIG"] = "";
  EXPECT_EQ(Resolve().value().Value("server"), "127.0.0.1:7070");
  variables_.erase("LENGTHWISE_CONFIG");
  EXPECT_EQ(Resolve().value().Value("server"), "head:7070");
  for (const auto& [name, value] : EmptySettingsEnvironment()) variables_[name] = value;
  EXPECT_EQ(Resolve().value().Value("server"), "127.0.0.1:7070");
}

}  // namespace
}  // namespace lengthwise::rpc
