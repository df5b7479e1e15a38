#include "app/import/xml_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "app/import/node_shape.h"

namespace tessera {

XmlFile::XmlFile(const std::string& text, const std::string& name, const std::string& root)
    : name_(name), line_starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(static_cast<std::ptrdiff_t>(i) + 1);
  }
  const pugi::xml_parse_result result =
      document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    refuse(where(result.offset), std::string("is no XML: ") + result.description(),
           "give the file as the program wrote it");
  }
  root_ = document_.document_element();
  if (root_.name() != root) {
    refuse(where(root_.offset_debug()),
           "the outermost element is <" + std::string(root_.name()) + ">",
           "expected is <" + root + ">");
  }
  check_depth();
}

/// Without recursion, which the nesting itself could exhaust.
void XmlFile::check_depth() const {
  int depth = 0;
  pugi::xml_node node = root_;
  while (node) {
    if (depth > kMaxDepth) {
      refuse(where(node), "nests deeper than " + std::to_string(kMaxDepth) + " elements",
             "no such file does");
    }
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    while (node && node != root_ && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    if (node == root_) return;
    node = node.next_sibling();
  }
}

std::string XmlFile::where(const pugi::xml_node& node) const {
  return where(node.offset_debug());
}

std::string XmlFile::where(std::ptrdiff_t offset) const {
  const auto after = std::ranges::upper_bound(line_starts_, std::max<std::ptrdiff_t>(0, offset));
  return name_ + ":" + std::to_string(after - line_starts_.begin());
}

int whole_number(const XmlFile& file, const pugi::xml_node& node, const char* attribute,
                 int fallback, int most) {
  const pugi::xml_attribute found = node.attribute(attribute);
  if (!found) return fallback;
  const char* text = found.value();
  const char* end = text + std::strlen(text);
  int value = 0;
  const auto [rest, failure] = std::from_chars(text, end, value);
  if (failure != std::errc() || rest != end || value < 0 || value > most) {
    refuse(file.where(node),
           std::string(node.name()) + " " + attribute + " = \"" + text + "\" is no such number",
           "use 0 to " + std::to_string(most));
  }
  return value;
}

void Vocabulary::look_at(const pugi::xml_node& node) {
  const auto known = known_.find(node.name());
  if (known == known_.end()) {
    ++elements_[node.name()];
    return;
  }
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    if (!known->second.contains(attribute.name())) {
      attributes_[node.name()].insert(attribute.name());
    }
  }
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() == pugi::node_element) look_at(child);
  }
}

std::vector<std::string> Vocabulary::unused() const {
  std::vector<std::string> lines;
  for (const auto& [name, count] : elements_) {
    lines.push_back(std::to_string(count) + " x <" + name + ">");
  }
  for (const auto& [name, attributes] : attributes_) {
    lines.push_back("attributes of <" + name +
                    ">: " + listed_briefly({attributes.begin(), attributes.end()}));
  }
  return lines;
}

}  // namespace tessera
