#include "predictor/weights.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/predictor/test_files.h"

namespace tessera {
namespace {

std::string message_of(const std::filesystem::path& path) {
  try {
    load_weights(path);
  } catch (const InputError& error) {
    return error.problems().front().text();
  }
  return "";
}

TEST(Weights, RoundTripGivesTheSameBytes) {
  const ScratchFolder folder;
  const PredictorWeights weights = load_weights(committed_weights());
  save_weights(weights, folder.path() / "copy.pb");
  EXPECT_TRUE(read_file(folder.path() / "copy.pb") == read_file(committed_weights()));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "copy.pb.tmp"));
}

TEST(Weights, CommittedOnesStateTheirProvenance) {
  const PredictorWeights weights = load_weights(committed_weights());
  ASSERT_FALSE(weights.data.empty());  // fp32_conv.csv may follow
  EXPECT_EQ(weights.data[0].file, "fp32.csv");
  EXPECT_NE(weights.data[0].fnv1a, 0u);
  EXPECT_EQ(weights.gpus.size(), 5u);
  EXPECT_FALSE(weights.logo.empty());
  for (const TrainedGpu& gpu : weights.gpus)
    for (const char* unseen : {"H100", "H200", "L4", "80GB"})
      EXPECT_EQ(gpu.effect.gpu.find(unseen), std::string::npos) << gpu.effect.gpu;
}

TEST(Weights, DamagedAndMissingFilesAreNamed) {
  const ScratchFolder folder;
  const auto text = folder.write("text.pb", "these are no weights");
  EXPECT_NE(message_of(text).find("text.pb"), std::string::npos);
  EXPECT_NE(message_of(folder.path() / "absent.pb").find("cannot be opened"), std::string::npos);
  // An empty file is a valid message without a version.
  EXPECT_NE(message_of(folder.write("empty.pb", "")).find("schema version 0"), std::string::npos);
}

TEST(Weights, ATruncatedFileIsRefused) {
  const ScratchFolder folder;
  const std::string whole = read_file(committed_weights());
  for (const std::size_t size : {whole.size() / 100, whole.size() / 2, whole.size() - 3})
    EXPECT_NE(message_of(folder.write("cut.pb", whole.substr(0, size))), "") << size;
}

}  // namespace
}  // namespace tessera
