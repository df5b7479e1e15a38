#include <random>
#include <string_view>

#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

constexpr int kMutations = 4000;

/// Pieces that break YAML, types or ranges.
constexpr std::string_view kPieces[] = {
    "",     "\n",       " ",     "\t",   ":",     ": ",        "- ",       "[",
    "]",    "{",        "}",     "&a ",  "*a",    "!!x ",      "\"",       "'",
    "|\n",  ">\n",      "#",     "%",    "---",   "...",       "<<: ",     "null",
    "-1",   "0",        "1e999", ".nan", "1.5",   "yes",       "4",        "99999999999999999",
    "\xff", "\xe2\x82", "\x04",  "../",  ".yaml", "extends: ", "tensor: ", "cluster",
    "gpt2", "\r"};

/// Cuts, repeats and replaces pieces of text. Uses only the generator's raw numbers: standard
/// distributions differ between libraries.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  void edit(std::string& text) {
    const std::size_t place = below(text.size() + 1);
    const std::size_t length = std::min(below(20), text.size() - place);
    const std::string piece = text.substr(place, length);
    switch (below(4)) {
      case 0:
        text.insert(place, kPieces[below(std::size(kPieces))]);
        return;
      case 1:
        text.erase(place, length);
        return;
      case 2:
        text.insert(below(text.size() + 1), piece);
        return;
      default:
        text.replace(place, length, kPieces[below(std::size(kPieces))]);
    }
  }

  std::mt19937_64 random_;
};

using Mutations = ConfigTest;

TEST_F(Mutations, OfGoodScenariosLoadOrAreRefusedAndNothingElse) {
  const auto ids = catalog_.ids(CatalogKind::scenarios);
  std::vector<std::string> seeds;
  for (const std::string& id : ids) {
    seeds.push_back(read(catalog_.file(CatalogKind::scenarios, id)));
  }
  seeds.push_back(resolved_yaml(load(catalog_.file(CatalogKind::scenarios, ids.front()))));
  Mutator mutator(20240229);
  int loaded = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string text = mutator.mutate(seeds[static_cast<std::size_t>(i) % seeds.size()]);
    const auto path = file("mutated.yaml", text);
    try {
      load(path);
      ++loaded;
    } catch (const InputError& error) {
      ASSERT_FALSE(error.problems().empty()) << text;
    } catch (const std::exception& error) {
      FAIL() << error.what() << " for\n" << text;
    }
  }
  // Both outcomes have to occur often, or the test checks nothing.
  EXPECT_GT(loaded, kMutations / 20);
  EXPECT_LT(loaded, kMutations * 19 / 20);
}

}  // namespace
}  // namespace tessera
