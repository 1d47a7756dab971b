#include "client/connection/names.h"

#include <fstream>
#include <string>

#include "client/connection/connection.h"
#include "client/connection/real_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

std::string WithoutCollections(std::string name) {
  for (const std::string collection : {"experiments/", "trials/"}) {
    if (const size_t at = name.find(collection); at != std::string::npos) {
      name.erase(at, collection.size());
    }
  }
  return name;
}

// Returns what a text finds, as the cases write it: nothing for NOT_FOUND.
template <typename Find>
std::string Found(Find find, Connection& connection, const std::string& text, NameUse use) {
  const auto found = find(connection, text, use);
  if (found.ok()) return WithoutCollections(found->name());
  return absl::IsNotFound(found.status()) ? "" : found.status().ToString();
}

TEST(NamesTest, AreThoseOfTheCasesForBothLanguages) {
  std::ifstream file("tests/shared_cases/names.json");
  const auto cases = nlohmann::json::parse(file);
  RealServer server;
  Connection connection(server.address());
  for (const std::string name : cases["submitted"]) server.Submit(name, {"none", "sin_cos"});
  ASSERT_FALSE(cases["experiments"].empty());
  for (const auto& one : cases["experiments"]) {
    const std::string text = one["text"];
    const std::string found = one["found"];
    EXPECT_EQ(Found(FindExperiment, connection, text, NameUse::kRead), found) << text;
    EXPECT_EQ(Found(FindExperiment, connection, text, NameUse::kChange),
              one["changes"] ? found : "")
        << text;
  }
  ASSERT_FALSE(cases["trials"].empty());
  for (const auto& one : cases["trials"]) {
    const std::string text = one["text"];
    const std::string found = one["found"];
    EXPECT_EQ(Found(FindTrial, connection, text, NameUse::kRead), found) << text;
    EXPECT_EQ(Found(FindTrial, connection, text, NameUse::kChange), one["changes"] ? found : "")
        << text;
  }
}

TEST(NamesTest, ErrorsNameWhatExists) {
  RealServer server;
  Connection connection(server.address());
  for (const std::string empty : {"", "experiments/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FindExperiment(connection, empty).status())) << empty;
  }
  for (const std::string name : {"quickstart", "quickstart", "ablation"}) {
    server.Submit(name, {"none"});
  }
  const auto error = [&](const std::string& text, NameUse use) {
    return std::string(FindExperiment(connection, text, use).status().message());
  };
  EXPECT_THAT(error("quikstart-1", NameUse::kRead), HasSubstr("did you mean \"quickstart-1\"?"));
  EXPECT_THAT(error("quick", NameUse::kRead),
              HasSubstr("matches several experiments: quickstart-2, quickstart-1"));
  EXPECT_EQ(error("quickstart", NameUse::kChange),
            "\"quickstart\" is the specification of several experiments (quickstart-2, "
            "quickstart-1); this command needs the full name of one");
  EXPECT_EQ(error("abl", NameUse::kChange),
            "there is no experiment \"abl\"; this command needs a full name, such as ablation-1");
}

TEST(ShortNameTest, IsTheLastPart) {
  EXPECT_EQ(ShortName("experiments/e-1"), "e-1");
  EXPECT_EQ(ShortName("experiments/e-1/trials/t"), "t");
  EXPECT_TRUE(NamesTrial("e-1/t"));
  EXPECT_FALSE(NamesTrial("experiments/e-1"));
}

}  // namespace
}  // namespace lengthwise::client
