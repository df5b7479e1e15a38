#include "sim/formats/snapshot/memory_snapshot.h"

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"
#include "sim/formats/snapshot/pickle.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kSnapshotUses> kUses{"parameters",  "gradients", "optimizer",
                                                            "activations", "temporary", "buffers",
                                                            "workspace",   "unknown"};

/// torch/profiler/_memory_profiler.py, Category, in its words.
constexpr std::array<std::pair<std::string_view, SnapshotUse>, 7> kProfilerWords{
    {{"parameter", SnapshotUse::parameters},
     {"gradient", SnapshotUse::gradients},
     {"optimizer_state", SnapshotUse::optimizer},
     {"activation", SnapshotUse::activations},
     {"autograd_detail", SnapshotUse::temporary},
     {"temporary", SnapshotUse::temporary},
     {"input", SnapshotUse::buffers}}};

SnapshotUse use_called(const std::string& written) {
  const std::string word = lower_case(written);
  for (std::size_t i = 0; i < kUses.size(); ++i)
    if (kUses[i] == word) return static_cast<SnapshotUse>(i);
  for (const auto& [known, use] : kProfilerWords)
    if (known == word) return use;
  return SnapshotUse::unknown;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// From whom a stack was called, frames from the innermost on.
SnapshotUse use_of_stack(const PickleView& frames) {
  if (frames.size() == 0) return SnapshotUse::unknown;
  bool backward = false, moved = false;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const PickleView frame = frames[i];
    const std::string_view file = frame.find("filename") ? frame.find("filename")->text() : "";
    const std::string_view function = frame.find("name") ? frame.find("name")->text() : "";
    if (has(file, "torch/optim/") || has(file, "/optimizers/")) return SnapshotUse::optimizer;
    backward = backward || has(file, "torch/autograd/") ||
               has(function, "torch::autograd::Engine") || function == "backward";
    moved = moved || function == "_apply" || function == "reset_parameters" ||
            function == "to_empty" || function == "from_pretrained" ||
            function == "load_state_dict";
  }
  if (moved) return SnapshotUse::parameters;
  return backward ? SnapshotUse::temporary : SnapshotUse::activations;
}

/// The innermost frame that is none of PyTorch's own.
std::string label_of_stack(const PickleView& frames) {
  std::string first;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto file = frames[i].find("filename"), function = frames[i].find("name"),
               line = frames[i].find("line");
    if (!file || !function) continue;
    const std::string text = std::string(file->text()) + ":" +
                             std::to_string(line ? line->integer() : 0) + " " +
                             std::string(function->text());
    const bool own = has(file->text(), "/torch/") || file->text() == "??";
    if (!own) return text;
    if (first.empty()) first = text;
  }
  return first;
}

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, std::string name)
      : root_(pickle.root()), name_(std::move(name)) {}

  std::vector<MemorySnapshot> run() {
    const bool old = root_.kind() == PickleKind::list;  // PyTorch 1.13's memory_snapshot()
    if (!old && root_.kind() != PickleKind::dict)
      fail("", "is no snapshot: a dict or a list of segments");
    read_segments(old ? root_ : wanted(root_, "segments", ""));
    const auto traces = old ? std::nullopt : root_.find("device_traces");
    if (traces) read_traces(*traces);
    if (devices_.empty()) fail("segments", "is empty: the allocator held nothing");
    for (MemorySnapshot& device : devices_) find_gradients(device);
    return std::move(devices_);
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw InputError({name_ + (where.empty() ? "" : ", " + where), what,
                      "give a pickle as torch.cuda.memory._dump_snapshot writes it"});
  }
  PickleView wanted(const PickleView& dict, const char* key, const std::string& where) const {
    const auto found = dict.find(key);
    if (!found) fail(where, std::string("has no ") + key);
    return *found;
  }
  std::int64_t number(const PickleView& dict, const char* key, const std::string& where) const {
    const PickleView found = wanted(dict, key, where);
    if (found.kind() != PickleKind::integer) fail(where, std::string(key) + " is no integer");
    return found.integer();
  }
  Bytes size(const PickleView& dict, const char* key, const std::string& where) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 46;  // 64 TiB, for sums of many
    const std::int64_t bytes = number(dict, key, where);
    if (bytes < 0 || bytes > kMost) fail(where, std::string(key) + " = " + std::to_string(bytes));
    return Bytes(bytes);
  }
  std::int64_t address(const PickleView& dict, const char* key, const std::string& where) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    const std::int64_t at = number(dict, key, where);
    if (at < 0 || at > kMost) fail(where, std::string(key) + " = " + std::to_string(at));
    return at;
  }
  MemorySnapshot& device(std::int64_t number, const std::string& where) {
    constexpr std::int64_t kMostDevices = 1024;
    if (number < 0 || number >= kMostDevices) fail(where, "is of device " + std::to_string(number));
    if (devices_.size() <= static_cast<std::size_t>(number))
      devices_.resize(static_cast<std::size_t>(number) + 1);
    return devices_[static_cast<std::size_t>(number)];
  }
  /// `category` of an entry, else what its frames say.
  std::pair<SnapshotUse, std::int32_t> taker(const PickleView& entry, MemorySnapshot& snapshot) {
    auto frames = entry.find("frames");
    const auto history = entry.find("history");  // of PyTorch 2.0
    if (!frames && history && history->size() > 0) frames = (*history)[0].find("frames");
    std::pair<SnapshotUse, std::int32_t> found{SnapshotUse::unknown, -1};
    if (frames) {
      found.first = use_of_stack(*frames);
      const std::string label = label_of_stack(*frames);
      if (!label.empty()) {
        const auto [known, is_new] = labels_.try_emplace(label, snapshot.labels.size());
        if (is_new) snapshot.labels.push_back(label);
        found.second = static_cast<std::int32_t>(known->second);
      }
    }
    if (const auto category = entry.find("category"))
      found.first = use_called(std::string(category->text()));
    return found;
  }
  void read_segments(const PickleView& segments) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const std::string where = "segments[" + std::to_string(i) + "]";
      read_segment(segments[i], where);
    }
  }
  void read_segment(const PickleView& from, const std::string& where) {
    const auto number_of = from.find("device");
    MemorySnapshot& snapshot = device(number_of ? number_of->integer() : 0, where);
    labels_.clear();
    for (std::size_t l = 0; l < snapshot.labels.size(); ++l) labels_[snapshot.labels[l]] = l;
    SnapshotSegment segment;
    segment.address = address(from, "address", where);
    segment.bytes = size(from, "total_size", where);
    segment.stream = from.find("stream") ? from.find("stream")->integer() : 0;
    segment.small = from.find("segment_type") && from.find("segment_type")->text() == "small";
    const PickleView blocks = wanted(from, "blocks", where);
    std::int64_t at = segment.address;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::string place = where + ".blocks[" + std::to_string(b) + "]";
      SnapshotBlock block{.address = at, .bytes = size(blocks[b], "size", place)};
      block.active = has(wanted(blocks[b], "state", place).text(), "active_");
      std::tie(block.use, block.label) = taker(blocks[b], snapshot);
      block.told = blocks[b].find("category").has_value();
      at += block.bytes.value();
      segment.blocks.push_back(block);
    }
    snapshot.segments.push_back(std::move(segment));
  }
  void read_traces(const PickleView& traces) {
    for (std::size_t d = 0; d < traces.size(); ++d) {
      if (traces[d].size() == 0) continue;
      MemorySnapshot& snapshot = device(static_cast<std::int64_t>(d), "device_traces");
      labels_.clear();
      for (std::size_t l = 0; l < snapshot.labels.size(); ++l) labels_[snapshot.labels[l]] = l;
      for (std::size_t e = 0; e < traces[d].size(); ++e)
        read_event(traces[d][e], snapshot,
                   "device_traces[" + std::to_string(d) + "][" + std::to_string(e) + "]");
    }
  }
  /// Memory that a free was asked for is there again when it is completed.
  static std::optional<SnapshotAction> action_called(std::string_view word) {
    if (word == "alloc") return SnapshotAction::take;
    if (word == "free_completed" || word == "free") return SnapshotAction::give_back;
    if (word == "segment_alloc" || word == "segment_map") return SnapshotAction::new_segment;
    if (word == "segment_free" || word == "segment_unmap") return SnapshotAction::end_segment;
    return std::nullopt;
  }
  void read_event(const PickleView& from, MemorySnapshot& snapshot, const std::string& where) {
    const auto action = action_called(wanted(from, "action", where).text());
    if (!action) return;
    SnapshotEvent event{.action = *action,
                        .address = address(from, "addr", where),
                        .bytes = size(from, "size", where)};
    event.stream = from.find("stream") ? from.find("stream")->integer() : 0;
    if (event.action == SnapshotAction::take)
      std::tie(event.use, event.label) = taker(from, snapshot);
    event.told = from.find("category").has_value();
    snapshot.events.push_back(event);
  }
  static void find_gradients(MemorySnapshot& snapshot);

  PickleView root_;
  std::string name_;
  std::vector<MemorySnapshot> devices_;
  std::map<std::string, std::size_t> labels_;
};

/// What backward made and a later forward pass, or the end, still finds.
void SnapshotReader::find_gradients(MemorySnapshot& snapshot) {
  std::map<std::int64_t, std::size_t> taken;  // temporary, by address
  std::vector<std::size_t> since_forward;     // number of activations taken so far, by event
  std::size_t forwards = 0;
  const auto lives_on = [&](std::size_t event) { return since_forward[event] < forwards; };
  std::vector<SnapshotEvent>& events = snapshot.events;
  for (std::size_t e = 0; e < events.size(); ++e) {
    SnapshotEvent& event = events[e];
    if (event.action == SnapshotAction::take) {
      if (event.use == SnapshotUse::activations) ++forwards;
      if (event.use == SnapshotUse::temporary && !event.told) taken[event.address] = e;
    } else if (event.action == SnapshotAction::give_back) {
      const auto found = taken.find(event.address);
      if (found != taken.end()) {
        if (lives_on(found->second)) events[found->second].use = SnapshotUse::gradients;
        taken.erase(found);
      }
    }
    since_forward.push_back(forwards);
  }
  for (const auto& [address, e] : taken) events[e].use = SnapshotUse::gradients;
  for (SnapshotSegment& segment : snapshot.segments)
    for (SnapshotBlock& block : segment.blocks)
      if (block.use == SnapshotUse::temporary && !block.told) block.use = SnapshotUse::gradients;
}

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const MemorySnapshot& snapshot) : snapshot_(snapshot) {}

  std::string run() && {
    out_.begin_dict();
    out_.text("segments");
    out_.begin_list();
    for (const SnapshotSegment& segment : snapshot_.segments) write(segment);
    out_.end_list();
    out_.text("device_traces");
    out_.begin_list();
    out_.begin_list();
    for (const SnapshotEvent& event : snapshot_.events) write(event);
    out_.end_list();
    out_.end_list();
    out_.end_dict();
    return std::move(out_).finish();
  }

 private:
  void number(const char* key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }
  void word(const char* key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }
  void frames(std::int32_t label) {
    out_.text("frames");
    out_.begin_list();
    if (label >= 0) {
      out_.begin_dict();
      word("name", snapshot_.labels[static_cast<std::size_t>(label)]);
      word("filename", "tessera");
      number("line", 0);
      out_.end_dict();
    }
    out_.end_list();
  }
  void write(const SnapshotSegment& segment) {
    std::int64_t active = 0;
    for (const SnapshotBlock& block : segment.blocks)
      active += block.active ? block.bytes.value() : 0;
    out_.begin_dict();
    number("device", 0);
    number("address", segment.address);
    number("total_size", segment.bytes.value());
    number("allocated_size", active);
    number("active_size", active);
    number("requested_size", active);
    number("stream", segment.stream);
    word("segment_type", segment.small ? "small" : "large");
    out_.text("is_expandable");
    out_.boolean(false);
    frames(-1);
    out_.text("blocks");
    out_.begin_list();
    for (const SnapshotBlock& block : segment.blocks) write(block);
    out_.end_list();
    out_.end_dict();
  }
  void write(const SnapshotBlock& block) {
    out_.begin_dict();
    number("address", block.address);
    number("size", block.bytes.value());
    number("requested_size", block.bytes.value());
    word("state", block.active ? "active_allocated" : "inactive");
    if (block.active) word("category", name_of(block.use));
    frames(block.label);
    out_.end_dict();
  }
  void write(const SnapshotEvent& event) {
    constexpr std::array<const char*, 4> kWords{"alloc", "free_completed", "segment_alloc",
                                                "segment_free"};
    // The page draws memory as free from the request on.
    if (event.action == SnapshotAction::give_back) write(event, "free_requested");
    write(event, kWords[static_cast<std::size_t>(event.action)]);
  }
  void write(const SnapshotEvent& event, const char* action) {
    out_.begin_dict();
    word("action", action);
    number("addr", event.address);
    number("size", event.bytes.value());
    number("stream", event.stream);
    if (event.action == SnapshotAction::take) word("category", name_of(event.use));
    frames(event.label);
    out_.end_dict();
  }

  const MemorySnapshot& snapshot_;
  PickleWriter out_;
};

}  // namespace

std::string_view name_of(SnapshotUse use) {
  return kUses[static_cast<std::size_t>(use)];
}

std::vector<MemorySnapshot> read_memory_snapshot(std::string contents, const std::string& name) {
  const Pickle pickle(std::move(contents), name);
  return SnapshotReader(pickle, name).run();
}

std::string to_pickle(const MemorySnapshot& snapshot) {
  return SnapshotWriter(snapshot).run();
}

}  // namespace tessera
