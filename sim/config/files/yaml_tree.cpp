#include "sim/config/files/yaml_tree.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "hw/units/input_error.h"
#include "hw/units/plain_text.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

/// A subtree that an alias may repeat, with its cost.
struct AnchoredNode {
  YamlNode node;
  int depth = 0;           ///< levels of the subtree, 1 for a scalar
  std::int64_t nodes = 0;  ///< in the subtree
};

/// Builds the tree from yaml-cpp's events and keeps the bounds while it grows.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const Origin> origin) : origin_(std::move(origin)) {}

  bool has_document() const { return root_.has_value(); }
  YamlNode take_root() { return std::move(*root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_document()) {
      refuse(mark, "a second document starts here", "keep one document per file");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_leaf(new_node(YamlNode::Kind::null, mark), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    if (holds_control_character(value))
      refuse(mark, "holds a control character", "write characters that are shown");
    YamlNode node = new_node(YamlNode::Kind::scalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    add_leaf(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      refuse(mark, "an alias stands inside the value that it repeats", "write the value out");
    }
    const AnchoredNode& target = found->second;
    repeated_ += target.nodes;
    if (repeated_ > kMaxRepeatedNodes)
      refuse(mark, "repeats more than 100000 values by aliases", "use fewer aliases");
    check_bounds(mark, target.depth, target.nodes);
    attach(target.node, target.depth, target.nodes);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::sequence, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::mapping, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// A collection whose end has not come yet.
  struct OpenNode {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    int depth = 1;
    std::int64_t nodes = 1;
    std::optional<YamlEntry> key;  ///< read, its value not yet
  };

  Mark to_mark(const YAML::Mark& mark) const { return {origin_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string what, std::string hint) const {
    throw InputError(Problem{to_mark(mark).text(), std::move(what), std::move(hint)});
  }

  YamlNode new_node(YamlNode::Kind kind, const YAML::Mark& mark) {
    check_bounds(mark, 1, 1);
    YamlNode node;
    node.kind = kind;
    node.mark = to_mark(mark);
    return node;
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    const bool plain = tag.empty() || tag == "?" || tag == "!";
    if (!plain) refuse(mark, "tag " + tag + " is not understood", "remove the tag");
  }

  void check_bounds(const YAML::Mark& mark, int depth, std::int64_t nodes) {
    if (static_cast<int>(open_.size()) + depth > kMaxNesting) {
      refuse(mark, "is nested more than 64 levels deep", "flatten it");
    }
    node_count_ += nodes;
    if (node_count_ > kMaxNodes) refuse(mark, "holds more than 1000000 values", "split it");
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_tag(mark, tag);
    OpenNode opened;
    opened.node = new_node(kind, mark);
    opened.anchor = anchor;
    open_.push_back(std::move(opened));
  }

  void close() {
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    remember(closed.anchor, closed.node, closed.depth, closed.nodes);
    attach(std::move(closed.node), closed.depth, closed.nodes);
  }

  void add_leaf(YamlNode node, YAML::anchor_t anchor) {
    remember(anchor, node, 1, 1);
    attach(std::move(node), 1, 1);
  }

  void remember(YAML::anchor_t anchor, const YamlNode& node, int depth, std::int64_t nodes) {
    if (anchor != 0) anchors_.insert_or_assign(anchor, AnchoredNode{node, depth, nodes});
  }

  void attach(YamlNode node, int depth, std::int64_t nodes) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    parent.depth = std::max(parent.depth, depth + 1);
    parent.nodes += nodes;
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      parent.key->value = std::move(node);
      parent.node.entries.push_back(std::move(*parent.key));
      parent.key.reset();
    } else {
      parent.key = to_key(node);
    }
  }

  static YamlEntry to_key(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::scalar) {
      throw InputError(Problem{node.mark.text(), "a key is not a plain name", "write name: value"});
    }
    return {node.text, node.mark, {}};
  }

  std::shared_ptr<const Origin> origin_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, AnchoredNode> anchors_;
  std::int64_t node_count_ = 0;
  std::int64_t repeated_ = 0;  ///< of these, by aliases
  std::optional<YamlNode> root_;
};

}  // namespace

std::string Mark::text() const {
  assert(origin);
  if (!origin->has_lines) return origin->name;
  return origin->name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const YamlEntry* YamlNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const YamlEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

YamlNode parse_yaml(const std::string& text, const std::shared_ptr<const Origin>& origin) {
  TreeBuilder builder(origin);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const Mark mark{origin, error.mark.line + 1, error.mark.column + 1};
    throw InputError(Problem{mark.text(), "is not valid YAML: " + error.msg,
                             "check indentation, colons, quotes and brackets"});
  }
  if (!builder.has_document()) {
    throw InputError(Problem{origin->name, "is empty", "write at least one key: value"});
  }
  return builder.take_root();
}

YamlNode read_yaml_file(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  const std::string shown = shown_path(file);
  check_plain_text(text, shown);
  return parse_yaml(text, std::make_shared<Origin>(Origin{shown, file.parent_path()}));
}

}  // namespace tessera
