#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/diagnosis/diagnosis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/testing/test_certificates.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

auto IsFinding(Verdict verdict, const std::string& subject, const std::string& found) {
  return AllOf(Field(&Finding::verdict, verdict), Field(&Finding::subject, subject),
               Field(&Finding::found, HasSubstr(found)));
}

class InstallationTest : public testing::Test {
 protected:
  InstallationTest()
      : directory_(absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    variables_["HOME"] = directory_;
  }

  std::string File(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = directory_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  rpc::Environment environment() {
    return [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    };
  }
  absl::StatusOr<rpc::Settings> Settings(const std::map<std::string, std::string>& flags = {}) {
    return rpc::ResolveSettings(flags, environment());
  }

  // Inspects a worker that is a shell script.
  Finding Worker(const std::string& name, const std::string& script) {
    return InspectProgram("worker", File(name, absl::StrCat("#!/bin/sh\n", script, "\n"), 0755),
                          self_);
  }

  const ProgramVersion self_ = {.version = "0.1.0", .revision = "abc"};
  const std::string directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(InstallationTest, ReportsSettingsAndTheirSources) {
  EXPECT_THAT(InspectSettings(Settings(), environment()),
              ElementsAre(IsFinding(Verdict::kOk, "settings", "there is no configuration file"),
                          IsFinding(Verdict::kOk, "in effect", "server 127.0.0.1:7070 (default)")));
  const std::string file =
      File(".config/lengthwise/config.yaml", "server: n07:7070\ntls_ca: system\n", 0644);
  EXPECT_THAT(InspectSettings(Settings({{"server", "n07:7070"}}), environment()),
              ElementsAre(IsFinding(Verdict::kOk, "settings", "read from " + file),
                          IsFinding(Verdict::kOk, "in effect",
                                    "server n07:7070 (--server), tls_ca system (file)")));
}

TEST_F(InstallationTest, UnreadableConfigurationFileFails) {
  File(".config/lengthwise/config.yaml", "sever: n07:7070\n", 0644);
  EXPECT_THAT(InspectSettings(Settings(), environment()),
              ElementsAre(IsFinding(Verdict::kFailure, "settings",
                                    "unknown setting \"sever\"; did you mean \"server\"?")));
}

TEST_F(InstallationTest, WarnsOfWritableConfigurationFile) {
  File(".config/lengthwise/config.yaml", "server: n07:7070\n", 0666);
  EXPECT_THAT(InspectSettings(Settings(), environment()),
              Contains(IsFinding(Verdict::kWarning, "settings", "which others may change")));
}

TEST_F(InstallationTest, LooksAtTheTokensFile) {
  const std::string text = "lw_" + std::string(12, 'a') + "_" + std::string(64, '0');
  const auto inspect = [&](const std::string& path) {
    return InspectCredentials(*Settings({{"token_file", path}}), absl::Now());
  };
  EXPECT_THAT(inspect(File("good", text, 0600)),
              Contains(IsFinding(Verdict::kOk, "token file", "readable by you only")));
  EXPECT_THAT(inspect(File("open", text, 0644)),
              Contains(IsFinding(Verdict::kFailure, "token file", "other users may read")));
  EXPECT_THAT(inspect(File("empty", "", 0600)),
              Contains(IsFinding(Verdict::kFailure, "token file", "holds no token")));
  EXPECT_THAT(inspect(directory_ + "/none"),
              Contains(IsFinding(Verdict::kFailure, "token file", "cannot read")));
  // No finding prints the secret.
  for (const Finding& finding : inspect(File("open", text, 0644))) {
    EXPECT_EQ(finding.found.find(std::string(64, '0')), std::string::npos);
  }
}

TEST_F(InstallationTest, WarnsOfPlainTextToAnotherMachine) {
  EXPECT_THAT(InspectCredentials(*Settings(), absl::Now()),
              Each(Field(&Finding::verdict, Verdict::kOk)));
  EXPECT_THAT(InspectCredentials(*Settings({{"server", "n07:7070"}}), absl::Now()),
              Contains(IsFinding(Verdict::kWarning, "encryption", "can read the traffic")));
  EXPECT_THAT(InspectCredentials(*Settings({{"tls_ca", directory_ + "/none.pem"}}), absl::Now()),
              Contains(IsFinding(Verdict::kFailure, "encryption", "none.pem")));
}

TEST_F(InstallationTest, WarnsOfACertificateThatExpiresSoon) {
  rpc::TestAuthority authority(directory_, "house");
  const rpc::TestAuthority::Pair pair = authority.Issue("ada", absl::Hours(24 * 30));
  const auto settings = *Settings(
      {{"tls_ca", authority.ca()}, {"tls_certificate", pair.certificate}, {"tls_key", pair.key}});
  const absl::Time now = absl::Now();
  EXPECT_THAT(InspectCredentials(settings, now),
              Contains(IsFinding(Verdict::kOk, "certificate", pair.certificate)));
  EXPECT_THAT(InspectCredentials(settings, now + absl::Hours(24 * 28)),
              Contains(IsFinding(Verdict::kWarning, "certificate", "expires at")));
  EXPECT_THAT(InspectCredentials(settings, now + absl::Hours(24 * 366 * 20)),
              Contains(IsFinding(Verdict::kWarning, "encryption", "expires at")));
}

TEST_F(InstallationTest, AsksProgramsForTheirVersions) {
  EXPECT_THAT(Worker("good", "echo lengthwise_worker 0.1.0; echo LibTorch 2.11.0"),
              IsFinding(Verdict::kOk, "worker", "lengthwise_worker 0.1.0, LibTorch 2.11.0, "));
  // The dynamic loader's message.
  const Finding broken =
      Worker("broken", "echo error while loading shared libraries: libtorch_cpu.so >&2; exit 127");
  EXPECT_THAT(broken, IsFinding(Verdict::kFailure, "worker", "libtorch_cpu.so"));
  EXPECT_THAT(broken.advice, HasSubstr("install the wheel again"));
  EXPECT_THAT(InspectProgram("worker", absl::NotFoundError("cannot find it"), self_),
              IsFinding(Verdict::kWarning, "worker", "not found"));
}

TEST_F(InstallationTest, DescribesTheWorkerOrSaysWhyThereIsNone) {
  EXPECT_EQ(DescribeWorker(File("good", "#!/bin/sh\nprintf 'worker 1\\nLibTorch 2\\n'\n", 0755)),
            "worker 1\nLibTorch 2");
  EXPECT_THAT(DescribeWorker(File("broken", "#!/bin/sh\necho no libtorch >&2; exit 127\n", 0755)),
              HasSubstr("no worker: " + directory_ + "/broken does not start: no libtorch"));
  EXPECT_EQ(DescribeWorker(absl::NotFoundError("cannot find it")), "no worker: cannot find it");
}

TEST_F(InstallationTest, WarnsOfAProgramOfAnotherBuild) {
  EXPECT_EQ(Worker("same", "echo 'lengthwise_worker 0.1.0 (abc)'").verdict, Verdict::kOk);
  const Finding revision = Worker("revision", "echo 'lengthwise_worker 0.1.0 (def)'");
  EXPECT_THAT(revision, IsFinding(Verdict::kWarning, "worker", "; this program is 0.1.0 (abc)"));
  EXPECT_THAT(revision.advice, HasSubstr("the same build"));
  EXPECT_EQ(Worker("version", "echo lengthwise_worker 0.2.0").verdict, Verdict::kWarning);
  EXPECT_EQ(Worker("silent", "true").verdict, Verdict::kWarning);
}

TEST_F(InstallationTest, WarnsOfAGpuThatAWorkerCannotUse) {
  const Finding finding = Worker("cpu_only",
                                 "echo lengthwise_worker 0.1.0; echo LibTorch 2.11.0; echo "
                                 "'warning: there is a GPU, but no CUDA; install it'");
  EXPECT_THAT(finding, IsFinding(Verdict::kWarning, "worker", ": there is a GPU, but no CUDA"));
  EXPECT_EQ(finding.advice, "install it");
}

TEST_F(InstallationTest, LooksForThePythonEnvironment) {
  const Finding missing = InspectPython(absl::NotFoundError("none"));
  EXPECT_THAT(missing, IsFinding(Verdict::kWarning, "python", "not found: `plot`"));
  EXPECT_EQ(
      missing.advice,
      "install the wheel again, in a checkout run deploy/install.sh, or set LENGTHWISE_PYTHON "
      "to a Python with the package lengthwise");
  EXPECT_THAT(InspectPython("/nowhere/python"),
              IsFinding(Verdict::kWarning, "python", "/nowhere/python cannot be executed"));
  const std::string path = File("bin/python", "", 0755);
  EXPECT_THAT(InspectPython(path), IsFinding(Verdict::kOk, "python", path));
}

TEST_F(InstallationTest, WarnsOfALocaleThatIsNotUtf8) {
  EXPECT_EQ(InspectLocale(environment()).verdict, Verdict::kWarning);
  variables_["LANG"] = "en_US.UTF-8";
  EXPECT_EQ(InspectLocale(environment()).verdict, Verdict::kOk);
  variables_["LC_ALL"] = "C";  // goes before LANG
  EXPECT_THAT(InspectLocale(environment()), IsFinding(Verdict::kWarning, "terminal", "LC_ALL=C"));
}

}  // namespace
}  // namespace lengthwise::client
