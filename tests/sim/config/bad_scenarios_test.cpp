#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = "tests/data/bad";

/// tests/data/bad holds NN_name.yaml (or NN_name/scenario.yaml where files include each other),
/// optionally NN_name.set with one override per line, and NN_name.expected: the whole message.
std::vector<fs::path> expected_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".expected") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

fs::path scenario_of(const fs::path& expected) {
  const fs::path folder = fs::path(expected).replace_extension("");
  return fs::is_directory(folder) ? folder / "scenario.yaml"
                                  : fs::path(expected).replace_extension(".yaml");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

using BadScenarios = ConfigTest;

TEST_F(BadScenarios, EachGetsExactlyTheMessageThatIsWrittenBesideIt) {
  for (const fs::path& expected : expected_files()) {
    const auto overrides = lines_of(read(fs::path(expected).replace_extension(".set")));
    const std::string message = message_of([&] { load(scenario_of(expected), overrides); });
    EXPECT_EQ(message + "\n", read(expected)) << expected;
  }
}

TEST_F(BadScenarios, AreAtLeastThirtyAndNoneLacksItsMessage) {
  const auto expected = expected_files();
  EXPECT_GE(expected.size(), 30u);
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const fs::path message = fs::path(entry.path()).replace_extension(".expected");
    EXPECT_TRUE(fs::exists(message)) << entry.path();
  }
}

TEST_F(BadScenarios, EveryProblemNamesItsPlaceAndSaysWhatToDo) {
  for (const fs::path& expected : expected_files()) {
    try {
      load(scenario_of(expected), lines_of(read(fs::path(expected).replace_extension(".set"))));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) {
        EXPECT_FALSE(problem.where.empty()) << expected;
        EXPECT_FALSE(problem.hint.empty()) << expected;
      }
    }
  }
}

TEST_F(BadScenarios, AFileOfMoreThan4MiBIsRefusedUnread) {
  const fs::path large = file("large.yaml", std::string((4u << 20) + 1, ' '));
  EXPECT_EQ(message_of([&] { load(large); }),
            large.string() + ": is larger than 4 MiB; split it or check that it is the right file");
}

TEST_F(BadScenarios, AMissingScenarioFileIsNamed) {
  EXPECT_EQ(message_of([&] { load("configs/scenarios/none.yaml"); }),
            "configs/scenarios/none.yaml: no such file; check the path");
}

TEST_F(BadScenarios, ReportsStayShortHoweverMuchIsWrong) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "field" + std::to_string(i) + ": 1\n";
  const std::string message = message_of([&] { load(file("many.yaml", text)); });
  // 100 problems and the line that counts the others: 1000 unknown and 3 missing fields.
  EXPECT_EQ(lines_of(message).size(), 101u);
  EXPECT_NE(message.find("\n903 more problems; solve these first"), std::string::npos);
}

}  // namespace
}  // namespace tessera
