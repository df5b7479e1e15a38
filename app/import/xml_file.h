#pragma once

#include <map>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <vector>

namespace tessera {

/// An XML text with places for messages. Elements nest at most kMaxDepth deep.
class XmlFile {
 public:
  /// Throws InputError for what is no XML, whose outermost element is not `root`, and for nesting
  /// beyond the limit.
  XmlFile(const std::string& text, const std::string& name, const std::string& root);

  pugi::xml_node root() const { return root_; }
  /// "file:line" of an element.
  std::string where(const pugi::xml_node& node) const;

  static constexpr int kMaxDepth = 64;

 private:
  void check_depth() const;
  std::string where(std::ptrdiff_t offset) const;

  std::string name_;
  std::vector<std::ptrdiff_t> line_starts_;
  pugi::xml_document document_;
  pugi::xml_node root_;
};

/// Whole number of an attribute, or `fallback` where it is missing. Throws InputError for anything
/// else and for numbers outside 0 to `most`.
int whole_number(const XmlFile& file, const pugi::xml_node& node, const char* attribute,
                 int fallback, int most);

/// Elements and attributes that an importer understands; collects the rest.
class Vocabulary {
 public:
  /// Element -> the attributes of it that are used.
  explicit Vocabulary(std::map<std::string, std::set<std::string>> known)
      : known_(std::move(known)) {}

  /// Looks at an element and all below it. Unknown elements are counted with all that they hold.
  void look_at(const pugi::xml_node& node);
  /// "2 x <prop>", "attributes of <cpu>: affinity, arch".
  std::vector<std::string> unused() const;

 private:
  std::map<std::string, std::set<std::string>> known_;
  std::map<std::string, int> elements_;
  std::map<std::string, std::set<std::string>> attributes_;
};

}  // namespace tessera
