#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  list,
  tuple,
  dict,
};

class PickleView;

/// The plain values of a Python pickle (protocols 2 to 5): numbers, texts, lists, tuples and dicts.
/// Nothing is ever executed: what names or calls Python code is refused by its opcode. Values that
/// a pickle mentions twice are there once. Source: Lib/pickletools.py.
class Pickle {
 public:
  /// Throws InputError, `name` in front, with the offset of what is wrong.
  Pickle(std::string contents, const std::string& name);

  PickleView root() const;

 private:
  friend class PickleReader;
  friend class PickleView;
  struct Node {
    PickleKind kind = PickleKind::none;
    std::int64_t integer = 0;  ///< or boolean; of texts: where they begin in `contents_`
    double real = 0;
    std::uint32_t length = 0;  ///< of texts [bytes]
    std::uint32_t items = 0;   ///< of containers: which of `items_`
  };

  std::string contents_;
  std::vector<Node> nodes_;
  /// Of containers, by number of their node; of dicts key, value, key, value.
  std::vector<std::vector<std::uint32_t>> items_;
  std::uint32_t root_ = 0;
};

/// A value of a Pickle, which must outlive it. Asking for what another kind has gives a 0, an empty
/// text, or nothing.
class PickleView {
 public:
  PickleView(const Pickle& pickle, std::uint32_t node) : pickle_(&pickle), node_(node) {}

  PickleKind kind() const { return node().kind; }
  std::int64_t integer() const;
  double number() const;  ///< of integers too
  std::string_view text() const;
  /// Items of a list or tuple; entries of a dict.
  std::size_t size() const;
  PickleView operator[](std::size_t item) const;
  PickleView key(std::size_t entry) const;
  PickleView value(std::size_t entry) const;
  /// The value of a dict's key; of several the last.
  std::optional<PickleView> find(std::string_view key) const;

 private:
  const Pickle::Node& node() const { return pickle_->nodes_[node_]; }
  const std::vector<std::uint32_t>& items() const;

  const Pickle* pickle_;
  std::uint32_t node_;
};

/// Writes a pickle of protocol 4 with the opcodes that PyTorch's memory_viz page knows too: each
/// value is written out, none is mentioned twice.
class PickleWriter {
 public:
  PickleWriter();

  void text(std::string_view value);
  void integer(std::int64_t value);
  void boolean(bool value);
  void begin_list();
  void end_list();
  void begin_dict();  ///< keys and values follow in turn
  void end_dict();
  /// The whole pickle.
  std::string finish() &&;

 private:
  void put(std::uint64_t value, int bytes);

  std::string out_;
};

}  // namespace tessera
