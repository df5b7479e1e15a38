// Runs a fuzzer where there is no libFuzzer: first every file of its corpus, past finds among them,
// then changed ones, the same on every machine, until the time is over.
//
// NAME_replay SECONDS FOLDER_OR_FILE...
//
// An input that ends the process, or keeps it busy for too long, is left in the working directory
// as NAME_replay.find; put it into the corpus once the fault is mended.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "tests/fuzz/mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 20;
constexpr unsigned kMostSecondsOfAnInput = 60;
constexpr std::array kSignals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};

// What a signal handler may look at: the input that runs, and where it is kept.
const char* current_data = nullptr;
std::size_t current_size = 0;
std::array<char, 4096> find_path{};

void keep_find(int signal) {
  const int file = open(find_path.data(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  std::size_t written = 0;
  while (file >= 0 && written < current_size) {
    const ssize_t count = write(file, current_data + written, current_size - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void run(const std::string& input) {
  current_data = input.data();
  current_size = input.size();
  alarm(kMostSecondsOfAnInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  alarm(0);
}

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Of a file, or of all files of a folder in the order of their names.
std::vector<std::string> inputs_at(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::ranges::sort(files);
  std::vector<std::string> inputs;
  for (const fs::path& file : files) inputs.push_back(content_of(file));
  return inputs;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: %s SECONDS FOLDER_OR_FILE...\n", words[0]);
    return 2;
  }
  const std::string find = fs::path(words[0]).filename().string() + ".find";
  std::copy_n(find.c_str(), std::min(find.size(), find_path.size() - 1), find_path.begin());
  for (const int signal : kSignals) std::signal(signal, keep_find);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(words[1]));
  std::vector<std::string> corpus;
  for (int i = 2; i < count; ++i) {
    for (std::string& input : inputs_at(words[i])) corpus.push_back(std::move(input));
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no inputs to start from\n", words[0]);
    return 1;
  }
  for (const std::string& input : corpus) run(input);
  const std::size_t replayed = corpus.size();
  tessera::fuzz::Mutator mutator(std::move(corpus), kSeed);
  std::size_t changed = 0;
  for (; std::chrono::steady_clock::now() < end; ++changed) run(mutator.next());
  std::printf("%zu inputs of the corpus, %zu changed ones\n", replayed, changed);
  return 0;
}
