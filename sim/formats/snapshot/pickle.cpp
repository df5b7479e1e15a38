#include "sim/formats/snapshot/pickle.h"

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/formats/snapshot/pickle_opcodes.h"

namespace tessera {
namespace {

/// What names, makes or calls objects of Python's.
constexpr std::array<std::pair<std::uint8_t, const char*>, 14> kRefused{
    {{'c', "GLOBAL"},
     {'i', "INST"},
     {'o', "OBJ"},
     {'R', "REDUCE"},
     {'b', "BUILD"},
     {'P', "PERSID"},
     {'Q', "BINPERSID"},
     {0x81, "NEWOBJ"},
     {0x82, "EXT1"},
     {0x83, "EXT2"},
     {0x84, "EXT4"},
     {0x92, "NEWOBJ_EX"},
     {0x93, "STACK_GLOBAL"},
     {0x98, "READONLY_BUFFER"}}};

constexpr int kOldest = 2, kNewest = 5;

}  // namespace

/// Runs the opcodes over a stack of values.
class PickleReader {
 public:
  PickleReader(Pickle& pickle, const std::string& name) : pickle_(pickle), name_(name) {}

  void run() {
    while (!stopped_) step();
  }

 private:
  using Index = std::uint32_t;

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError({name_ + ", byte " + std::to_string(opcode_at_), what,
                      "give a pickle as torch.cuda.memory._dump_snapshot writes it"});
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(bytes(1).front()); }
  std::string_view bytes(std::uint64_t count) {
    const std::string& all = pickle_.contents_;
    if (count > all.size() - at_) fail("the file ends here");
    const std::string_view found(all.data() + at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return found;
  }
  std::uint64_t little(int count) {
    std::uint64_t value = 0;
    const std::string_view from = bytes(static_cast<std::uint64_t>(count));
    for (int i = count; i-- > 0;)
      value = value << 8 | static_cast<std::uint8_t>(from[static_cast<std::size_t>(i)]);
    return value;
  }

  Index add(Pickle::Node node) {
    if (pickle_.nodes_.size() >= std::numeric_limits<Index>::max()) fail("too many values");
    pickle_.nodes_.push_back(node);
    return static_cast<Index>(pickle_.nodes_.size() - 1);
  }
  void push(Pickle::Node node) { stack_.push_back(add(node)); }
  void push_integer(std::int64_t value, PickleKind kind = PickleKind::integer) {
    push({.kind = kind, .integer = value});
  }
  void push_text(std::uint64_t length, PickleKind kind = PickleKind::text) {
    const std::size_t begin = at_;
    if (length > std::numeric_limits<std::uint32_t>::max())
      fail("a text of " + std::to_string(length) + " bytes");
    bytes(length);
    push({.kind = kind,
          .integer = static_cast<std::int64_t>(begin),
          .length = static_cast<std::uint32_t>(length)});
  }
  void push_container(PickleKind kind, std::vector<Index> items = {}) {
    pickle_.items_.push_back(std::move(items));
    push({.kind = kind, .items = static_cast<std::uint32_t>(pickle_.items_.size() - 1)});
  }
  /// Integers of Python's have any size; addresses and bytes fit 64 bits.
  void push_long() {
    const int length = byte();
    if (length > 8) fail("an integer of " + std::to_string(length) + " bytes");
    const std::uint64_t value = little(length);
    const bool negative = length > 0 && length < 8 && (value >> (8 * length - 1) & 1) != 0;
    const std::uint64_t sign = negative ? ~std::uint64_t{0} << (8 * length) : 0;
    push_integer(static_cast<std::int64_t>(value | sign));
  }
  /// Big-endian.
  void push_real() {
    std::uint64_t bits = 0;
    for (const char c : bytes(8)) bits = bits << 8 | static_cast<std::uint8_t>(c);
    push({.kind = PickleKind::real, .real = std::bit_cast<double>(bits)});
  }

  Index pop() {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) fail("no value to take");
    const Index top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<Index> pop_to_mark() {
    if (marks_.empty()) fail("no mark to go back to");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Index> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<Index> pop_last(int count) {
    std::vector<Index> items(static_cast<std::size_t>(count));
    for (int i = count; i-- > 0;) items[static_cast<std::size_t>(i)] = pop();
    return items;
  }
  void extend(PickleKind kind, const std::vector<Index>& items) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor || pickle_.nodes_[stack_.back()].kind != kind)
      fail(kind == PickleKind::list ? "no list to append to" : "no dict to put into");
    if (kind == PickleKind::dict && items.size() % 2 != 0) fail("a key without a value");
    auto& held = pickle_.items_[pickle_.nodes_[stack_.back()].items];
    held.insert(held.end(), items.begin(), items.end());
  }
  void remember(std::uint64_t place) {
    const Index top = pop();
    stack_.push_back(top);
    if (place > memo_.size())
      fail("memo " + std::to_string(place) + " behind " + std::to_string(memo_.size()));
    if (place == memo_.size()) memo_.push_back(top);
    memo_[static_cast<std::size_t>(place)] = top;
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size()) fail("memo " + std::to_string(place) + " was never set");
    stack_.push_back(memo_[static_cast<std::size_t>(place)]);
  }
  void stop() {
    pickle_.root_ = pop();
    if (!marks_.empty() || !stack_.empty()) fail("values are left over");
    stopped_ = true;
  }

  void step();
  bool step_value(std::uint8_t opcode);
  bool step_container(std::uint8_t opcode);
  bool step_stack(std::uint8_t opcode);
  [[noreturn]] void refuse(std::uint8_t opcode) const;

  Pickle& pickle_;
  const std::string& name_;
  std::size_t at_ = 0, opcode_at_ = 0;
  bool stopped_ = false;
  std::vector<Index> stack_, memo_;
  std::vector<std::size_t> marks_;
};

void PickleReader::refuse(std::uint8_t opcode) const {
  constexpr const char* kDigits = "0123456789abcdef";
  const std::string code = std::string("0x") + kDigits[opcode >> 4] + kDigits[opcode & 15];
  for (const auto& [refused, word] : kRefused)
    if (refused == opcode)
      fail("opcode " + code + ", " + word + ", would run code of Python's; nothing is run here");
  fail("opcode " + code + " is none of plain values in protocols 2 to 5");
}

bool PickleReader::step_value(std::uint8_t opcode) {
  switch (opcode) {
    case kNone:
      return push({}), true;
    case kNewTrue:
    case kNewFalse:
      return push_integer(opcode == kNewTrue ? 1 : 0, PickleKind::boolean), true;
    case kBinInt:
      return push_integer(static_cast<std::int32_t>(little(4))), true;
    case kBinInt1:
      return push_integer(byte()), true;
    case kBinInt2:
      return push_integer(static_cast<std::int64_t>(little(2))), true;
    case kLong1:
      return push_long(), true;
    case kBinFloat:
      return push_real(), true;
    case kShortBinUnicode:
      return push_text(byte()), true;
    case kBinUnicode:
      return push_text(little(4)), true;
    case kBinUnicode8:
      return push_text(little(8)), true;
    case kShortBinBytes:
      return push_text(byte(), PickleKind::bytes), true;
    case kBinBytes:
      return push_text(little(4), PickleKind::bytes), true;
    default:
      return false;
  }
}

bool PickleReader::step_container(std::uint8_t opcode) {
  switch (opcode) {
    case kEmptyList:
      return push_container(PickleKind::list), true;
    case kEmptyDict:
      return push_container(PickleKind::dict), true;
    case kEmptyTuple:
      return push_container(PickleKind::tuple), true;
    case kTuple:
      return push_container(PickleKind::tuple, pop_to_mark()), true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return push_container(PickleKind::tuple, pop_last(opcode - kTuple1 + 1)), true;
    case kAppend:
      return extend(PickleKind::list, pop_last(1)), true;
    case kAppends:
      return extend(PickleKind::list, pop_to_mark()), true;
    case kSetItem:
      return extend(PickleKind::dict, pop_last(2)), true;
    case kSetItems:
      return extend(PickleKind::dict, pop_to_mark()), true;
    default:
      return false;
  }
}

bool PickleReader::step_stack(std::uint8_t opcode) {
  switch (opcode) {
    case kMark:
      return marks_.push_back(stack_.size()), true;
    case kPop:
      return pop(), true;
    case kPopMark:
      return pop_to_mark(), true;
    case kMemoize:
      return remember(memo_.size()), true;
    case kBinPut:
      return remember(byte()), true;
    case kLongBinPut:
      return remember(little(4)), true;
    case kBinGet:
      return recall(byte()), true;
    case kLongBinGet:
      return recall(little(4)), true;
    case kFrame:
      return little(8), true;
    case kStop:
      return stop(), true;
    default:
      return false;
  }
}

void PickleReader::step() {
  opcode_at_ = at_;
  const std::uint8_t opcode = byte();
  if (opcode == kProto) {
    const int protocol = byte();
    if (protocol < kOldest || protocol > kNewest)
      fail("protocol " + std::to_string(protocol) + " of pickles, not 2 to 5");
    return;
  }
  if (!step_value(opcode) && !step_container(opcode) && !step_stack(opcode)) refuse(opcode);
}

Pickle::Pickle(std::string contents, const std::string& name) : contents_(std::move(contents)) {
  PickleReader(*this, name).run();
}

PickleView Pickle::root() const {
  return {*this, root_};
}

std::int64_t PickleView::integer() const {
  const bool whole = kind() == PickleKind::integer || kind() == PickleKind::boolean;
  return whole ? node().integer : 0;
}

double PickleView::number() const {
  return kind() == PickleKind::real ? node().real : static_cast<double>(integer());
}

std::string_view PickleView::text() const {
  if (kind() != PickleKind::text && kind() != PickleKind::bytes) return {};
  return std::string_view(pickle_->contents_)
      .substr(static_cast<std::size_t>(node().integer), node().length);
}

const std::vector<std::uint32_t>& PickleView::items() const {
  static const std::vector<std::uint32_t> kNothing;
  const bool holds = kind() >= PickleKind::list;
  return holds ? pickle_->items_[node().items] : kNothing;
}

std::size_t PickleView::size() const {
  return kind() == PickleKind::dict ? items().size() / 2 : items().size();
}

PickleView PickleView::operator[](std::size_t item) const {
  return {*pickle_, items().at(item)};
}
PickleView PickleView::key(std::size_t entry) const {
  return {*pickle_, items().at(2 * entry)};
}
PickleView PickleView::value(std::size_t entry) const {
  return {*pickle_, items().at(2 * entry + 1)};
}

std::optional<PickleView> PickleView::find(std::string_view wanted) const {
  if (kind() != PickleKind::dict) return std::nullopt;
  for (std::size_t entry = size(); entry-- > 0;)
    if (key(entry).text() == wanted) return value(entry);
  return std::nullopt;
}

}  // namespace tessera
