#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tessera::fuzz {
namespace {

constexpr std::size_t kLongest = 1 << 18;
constexpr std::size_t kMostWords = 1 << 14;

/// Numbers, and what stands for one, that a reader may not expect.
const std::vector<std::string>& numbers() {
  static const std::vector<std::string> kNumbers = {"0",          "-1",
                                                    "1",          "2147483647",
                                                    "2147483648", "-9223372036854775808",
                                                    "1e308",      "1e999",
                                                    "-1e999",     "NaN",
                                                    "Infinity",   "18446744073709551616",
                                                    "0.5",        "1e-320",
                                                    "4294967295", "65536",
                                                    "null",       "true",
                                                    "\"\"",       "[]",
                                                    "{}",         "0x10",
                                                    "1_000",      "1000000",
                                                    "1e18",       "9007199254740993"};
  return kNumbers;
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-' ||
         letter == '.';
}

void add_words(const std::string& text, std::vector<std::string>& words) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && is_word(text[i])) continue;
    if (i > begin && words.size() < kMostWords) words.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
}

}  // namespace

Mutator::Mutator(std::vector<std::string> corpus, std::uint64_t seed)
    : corpus_(std::move(corpus)), random_(seed) {
  for (const std::string& text : corpus_) add_words(text, words_);
  if (words_.empty()) words_.emplace_back("0");
}

std::string Mutator::next() {
  std::string text = any_of(corpus_);
  const std::size_t changes = 1 + below(6);
  for (std::size_t i = 0; i < changes; ++i) change(text);
  if (text.size() > kLongest) text.resize(kLongest);
  return text;
}

void Mutator::change(std::string& text) {
  switch (below(6)) {
    case 0:
      return change_byte(text);
    case 1:
      return put_word(text);
    case 2:
    case 3:
      return replace_number(text);
    case 4:
      return repeat_or_drop_line(text);
    default:
      return join(text);
  }
}

void Mutator::change_byte(std::string& text) {
  const std::size_t place = place_in(text);
  const char byte = static_cast<char>(below(256));
  if (place == text.size() || below(3) == 0) {
    text.insert(place, 1, byte);
  } else if (below(2) == 0) {
    text[place] = byte;
  } else {
    text.erase(place, 1 + below(8));
  }
}

void Mutator::put_word(std::string& text) {
  const std::size_t place = place_in(text);
  std::size_t end = place;
  if (below(2) == 0)
    while (end < text.size() && is_word(text[end])) ++end;
  text.replace(place, end - place, any_of(words_));
}

void Mutator::replace_number(std::string& text) {
  std::size_t begin = place_in(text);
  while (begin < text.size() && std::isdigit(static_cast<unsigned char>(text[begin])) == 0) ++begin;
  std::size_t end = begin;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  if (begin < end) text.replace(begin, end - begin, any_of(numbers()));
}

void Mutator::repeat_or_drop_line(std::string& text) {
  const std::size_t place = place_in(text);
  const std::size_t before = place == 0 ? std::string::npos : text.rfind('\n', place - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::size_t after = text.find('\n', place);
  const std::size_t end = after == std::string::npos ? text.size() : after + 1;
  const std::string line = text.substr(begin, end - begin);
  if (below(2) == 0) {
    text.erase(begin, line.size());
  } else {
    text.insert(place_in(text), line);
  }
}

void Mutator::join(std::string& text) {
  const std::string& other = any_of(corpus_);
  const std::size_t from = place_in(other);
  const std::size_t length = below(std::min<std::size_t>(other.size() - from, 4096) + 1);
  const std::size_t place = place_in(text);
  const std::size_t replaced = below(2) == 0 ? length : 0;
  text.replace(place, std::min(replaced, text.size() - place), other, from, length);
}

}  // namespace tessera::fuzz
