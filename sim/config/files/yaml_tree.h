#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What a piece of configuration was read from.
struct Origin {
  std::string name;                 ///< as messages show it: a file, or "--set path=value"
  std::filesystem::path directory;  ///< relative file names in it start here
  bool has_lines = true;            ///< false: places in it are not worth telling
};

/// A place in an Origin; lines and columns count from 1.
struct Mark {
  std::shared_ptr<const Origin> origin;
  int line = 1;
  int column = 1;

  std::string text() const;  ///< "file:line:column", or the origin's name alone
};

struct YamlEntry;

/// A YAML value that knows where it stands. Mappings keep their order and their duplicates.
struct YamlNode {
  enum class Kind : std::uint8_t {
    null,
    scalar,
    sequence,
    mapping,
    broken,  ///< already reported; whoever meets it stays silent
  };
  Kind kind = Kind::null;
  std::string text;     ///< of a scalar
  bool quoted = false;  ///< a scalar in quotes is text, never a number
  Mark mark;
  std::vector<YamlNode> items;     ///< of a sequence
  std::vector<YamlEntry> entries;  ///< of a mapping

  const YamlEntry* find(std::string_view key) const;  ///< first of that name, or null
};

struct YamlEntry {
  std::string key;
  Mark mark;
  YamlNode value;
};

/// Bounds that keep a hostile file from costing more than its size.
constexpr std::int64_t kMaxFileBytes = std::int64_t{4} << 20;
constexpr int kMaxNesting = 64;
/// Of one file, aliases expanded: fabrics of 2,000 hosts have 150,000.
constexpr std::int64_t kMaxNodes = 1'000'000;
constexpr std::int64_t kMaxRepeatedNodes = 100'000;  ///< of these, by aliases

/// Parses one YAML document, aliases expanded. Throws InputError with the place for syntax errors,
/// an empty or a second document, recursive anchors, tags, and crossed bounds.
YamlNode parse_yaml(const std::string& text, const std::shared_ptr<const Origin>& origin);

/// Reads and parses `file`; also refuses what is not a UTF-8 text
/// file of up to kMaxFileBytes.
YamlNode read_yaml_file(const std::filesystem::path& file);

}  // namespace tessera
