// "bf16 gemm 4096x4096x1024" -> KernelOptions.
#include <algorithm>
#include <array>
#include <sstream>

#include "app/cli/kernel_query.h"
#include "hw/units/input_error.h"
#include "predictor/measured/kernel_csv.h"
#include "workloads/program/attention.h"

namespace tessera {
namespace {

bool is_precision(const std::string& word) {
  return std::ranges::any_of(kAllPrecisions, [&](Precision p) { return name_of(p) == word; });
}

bool is_implementation(const std::string& word) {
  for (std::size_t i = 0; i < kAttentionImplementations; ++i)
    if (name_of(static_cast<AttentionImplementation>(i)) == word) return true;
  return false;
}

bool starts_with_digit(const std::string& word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9';
}

/// Options that "AxBxC" fills, by operator and number of sizes.
std::vector<std::string> names_of_sizes(const std::string& op, std::size_t count) {
  if (op == "attention") return {"batch", "heads", "seq", "head-dim"};
  if (op == "grouped_gemm") return {"n", "k"};
  if (op == "bmm" || count == 4) return {"batch", "m", "n", "k"};
  if (count == 3) return {"m", "n", "k"};
  return {"rows", "cols"};
}

[[noreturn]] void fail(const std::string& word, const char* hint) {
  throw InputError({.where = "kernel", .what = "'" + word + "' is not understood", .hint = hint});
}

std::vector<std::int64_t> numbers_in(const std::string& word) {
  std::vector<std::int64_t> numbers;
  std::istringstream parts(word);
  for (std::string part; std::getline(parts, part, 'x');) {
    const auto number = parse_number<std::int64_t>(part);
    if (!number) fail(word, "sizes are whole numbers with x between, such as 4096x4096x1024");
    numbers.push_back(*number);
  }
  return numbers;
}

void read_sizes(const std::string& word, KernelOptions& options) {
  const std::vector<std::int64_t> numbers = numbers_in(word);
  const std::vector<std::string> names = names_of_sizes(options.op, numbers.size());
  if (numbers.size() != names.size())
    fail(word,
         "products are MxNxK, a batch of them BxMxNxK, attention is BATCHxHEADSxSEQxHEAD_DIM, "
         "grouped_gemm GROUPS NxK, all others are ROWSxCOLS");
  for (std::size_t i = 0; i < names.size(); ++i) options.sizes[names[i]] = numbers[i];
}

void read_assignment(const std::string& word, KernelOptions& options) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto number = parse_number<std::int64_t>(std::string_view(word).substr(equals + 1));
  const std::vector<std::string> known = size_options();
  if (!number || std::ranges::find(known, name) == known.end())
    fail(word, "a size option and a whole number, such as kv-heads=8");
  options.sizes[name] = *number;
}

void read_word(const std::string& word, KernelOptions& options) {
  constexpr std::array<std::string_view, 3> kDirections{"forward", "backward", "forward+backward"};
  if (word.find('=') != word.npos) return read_assignment(word, options);
  if (is_precision(word))
    options.precision = word;
  else if (is_implementation(word))
    options.implementation = word;
  else if (word == "causal" || word == "full")
    options.mask = word;
  else if (word == "tn" || word == "nn" || word == "nt")
    options.layout = word;
  else if (std::ranges::find(kDirections, word) != kDirections.end())
    options.direction = word;
  else if (word.find(',') != word.npos)
    options.groups = word;
  else if (!options.op.empty())
    fail(options.op + " " + word,
         "name one operator, its sizes and its format: fp32, tf32, bf16, fp16, fp8 or fp4");
  else
    options.op = word == "gemm" ? "linear" : word;
}

}  // namespace

void read_kernel_text(const std::string& text, KernelOptions& options) {
  std::istringstream words(text);
  std::string sizes;
  for (std::string word; words >> word;) {
    if (starts_with_digit(word) && word.find(',') == word.npos) {
      if (!sizes.empty()) fail(word, "the sizes are there already");
      sizes = word;
    } else {
      read_word(word, options);
    }
  }
  if (options.op.empty()) fail(text, "name an operator, such as gemm, softmax or attention");
  if (!sizes.empty()) read_sizes(sizes, options);
}

}  // namespace tessera
