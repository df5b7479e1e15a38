#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tessera::fuzz {

/// Inputs that are a few changes away from a corpus: bytes, words of the corpus put elsewhere,
/// numbers that readers trip over, lines repeated or left out, two inputs joined. The same seed
/// gives the same inputs on every machine.
class Mutator {
 public:
  /// `corpus` is not empty.
  Mutator(std::vector<std::string> corpus, std::uint64_t seed);

  /// Longer than a few hundred KiB never.
  std::string next();

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  /// Where a change begins; the end is a place too.
  std::size_t place_in(const std::string& text) { return below(text.size() + 1); }
  const std::string& any_of(const std::vector<std::string>& texts) {
    return texts[below(texts.size())];
  }
  void change(std::string& text);
  void change_byte(std::string& text);
  void put_word(std::string& text);
  void replace_number(std::string& text);
  void repeat_or_drop_line(std::string& text);
  void join(std::string& text);

  std::vector<std::string> corpus_;
  std::vector<std::string> words_;  ///< of the corpus
  std::mt19937_64 random_;
};

}  // namespace tessera::fuzz
