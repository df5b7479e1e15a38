#include "sim/remat/graph.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "hw/units/input_error.h"

namespace tessera::remat {
namespace {

/// Sums of two of these still fit.
constexpr std::int64_t kLargestSum = std::int64_t{1} << 61;

[[noreturn]] void refuse(const std::string& graph, std::size_t op, const std::string& what) {
  throw InputError({.where = graph,
                    .what = "operator " + std::to_string(op) + " " + what,
                    .hint = "number tensors in the order in which operators make them"});
}

void add_checked(std::int64_t& sum, std::int64_t value, const std::string& graph, std::size_t op) {
  if (value < 0) refuse(graph, op, "has a negative size or time");
  if (value > kLargestSum - sum) refuse(graph, op, "makes a sum of sizes or times too large");
  sum += value;
}

std::vector<TensorId> sorted_once(std::vector<TensorId> tensors) {
  std::ranges::sort(tensors);
  tensors.erase(std::ranges::unique(tensors).begin(), tensors.end());
  return tensors;
}

/// By operator; empty where none takes time.
template <class Part>
std::vector<Part> parts_of(const std::vector<OpSpec>& ops, Part OpSpec::*part) {
  std::vector<Part> parts;
  if (std::ranges::any_of(ops, [part](const OpSpec& op) { return (op.*part).time > 0; }))
    for (const OpSpec& op : ops) parts.push_back(op.*part);
  return parts;
}

/// By operator; empty where none has a time of its own in program order.
std::vector<Nanoseconds> first_times_of(const std::vector<OpSpec>& ops) {
  std::vector<Nanoseconds> times;
  const auto differs = [](const OpSpec& op) { return op.first_time.value_or(op.time) != op.time; };
  if (std::ranges::any_of(ops, differs))
    for (const OpSpec& op : ops) times.push_back(op.first_time.value_or(op.time));
  return times;
}

}  // namespace

Graph::Graph(std::string name, const std::vector<OpSpec>& ops, const std::vector<TensorId>& keep,
             ByteCount static_bytes, OpId first_backward, const StepProgress& progress)
    : name_(std::move(name)),
      link_uses_(parts_of(ops, &OpSpec::link)),
      transfers_(parts_of(ops, &OpSpec::transfer)),
      first_times_(first_times_of(ops)),
      static_bytes_(static_bytes),
      first_backward_(first_backward),
      done_(progress.done) {
  std::int64_t bytes = 0;
  add_checked(bytes, static_bytes, name_, 0);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpSpec& op = ops[i];
    std::int64_t unused = base_time_;
    add_checked(unused, op.time, name_, i);
    if (static_cast<OpId>(i) >= done_)
      add_checked(base_time_, op.first_time.value_or(op.time), name_, i);
    add_checked(bytes, op.workspace, name_, i);
    const std::vector<TensorId> inputs = sorted_once(op.inputs);
    if (!inputs.empty() && (inputs.front() < 0 || inputs.back() >= tensors()))
      refuse(name_, i, "reads a tensor that no earlier operator makes");
    names_.push_back(op.name);
    times_.push_back(op.time);
    workspaces_.push_back(op.workspace);
    recomputable_.push_back(op.recomputable ? 1 : 0);
    input_ids_.insert(input_ids_.end(), inputs.begin(), inputs.end());
    input_begin_.push_back(static_cast<std::int32_t>(input_ids_.size()));
    for (const ByteCount size : op.out_bytes) {
      add_checked(bytes, size, name_, i);
      sizes_.push_back(size);
      producers_.push_back(static_cast<OpId>(i));
    }
    output_begin_.push_back(static_cast<std::int32_t>(sizes_.size()));
  }
  mark_tensors(keep, progress.gone);
  index_consumers();
  find_unplanned_time();
  if (first_backward_ < 0 || first_backward_ > this->ops()) first_backward_ = base_peak_op(*this);
}

void Graph::mark_tensors(const std::vector<TensorId>& keep, const std::vector<TensorId>& gone) {
  kept_.assign(sizes_.size(), 0);
  if (!gone.empty()) gone_.assign(sizes_.size(), 0);
  for (const TensorId tensor : gone) gone_[tensor] = 1;
  for (const TensorId tensor : keep) {
    if (tensor < 0 || tensor >= tensors())
      refuse(name_, names_.size(), "is asked to keep no tensor");
    kept_[tensor] = 1;
  }
  for (TensorId q = 0; q < tensors(); ++q)
    if (kept(q)) keep_.push_back(q);
}

void Graph::index_consumers() {
  consumer_begin_.assign(sizes_.size() + 1, 0);
  for (const TensorId q : input_ids_) ++consumer_begin_[q + 1];
  for (std::size_t q = 0; q < sizes_.size(); ++q) consumer_begin_[q + 1] += consumer_begin_[q];
  consumer_ids_.resize(input_ids_.size());
  std::vector<std::int32_t> next(consumer_begin_.begin(), consumer_begin_.end() - 1);
  for (OpId op = 0; op < ops(); ++op)
    for (const TensorId q : inputs(op)) consumer_ids_[next[q]++] = op;
}

void Graph::find_unplanned_time() {
  unplanned_time_ = base_time_;
  if (transfers_.empty()) return;
  Nanoseconds now = 0, free = 0;
  std::vector<Nanoseconds> ends(times_.size());
  for (OpId op = 0; op < ops(); ++op) {
    if (transfers_[op].awaits >= 0) now = std::max(now, ends[transfers_[op].awaits]);
    now += first_time(op);
    if (transfers_[op].time > 0) ends[op] = free = std::max(now, free) + transfers_[op].time;
  }
  unplanned_time_ = std::max(now, free);
}

bool Graph::same_problem(const Graph& other) const {
  const auto problem = [](const Graph& graph) {
    return std::tie(graph.static_bytes_, graph.first_backward_, graph.done_, graph.times_,
                    graph.first_times_, graph.workspaces_, graph.recomputable_, graph.link_uses_,
                    graph.transfers_, graph.input_begin_, graph.output_begin_, graph.input_ids_,
                    graph.sizes_, graph.keep_, graph.gone_);
  };
  return problem(*this) == problem(other);
}

ByteCount Graph::working_set(OpId op) const {
  ByteCount bytes = workspaces_[op];
  for (const TensorId q : inputs(op)) bytes += sizes_[q];
  for (TensorId q = first_output(op); q < first_output(op + 1); ++q) bytes += sizes_[q];
  return bytes;
}

LowerBound lower_bound(const Graph& graph) {
  LowerBound bound;
  for (const TensorId q : graph.kept_tensors()) bound.bytes += graph.size(q);
  for (OpId op = graph.done(); op < graph.ops(); ++op) {
    const ByteCount bytes = graph.working_set(op);
    if (bytes > bound.bytes || (bytes == bound.bytes && bound.op < 0)) bound = {bytes, op};
  }
  bound.bytes += graph.static_bytes();
  return bound;
}

namespace {

struct BasePeak {
  ByteCount bytes = 0;
  OpId op = 0;
};

BasePeak find_base_peak(const Graph& graph) {
  std::vector<ByteCount> freed(graph.ops() + 1, 0);
  ByteCount live = 0;
  BasePeak peak;
  for (TensorId q = 0; q < graph.tensors(); ++q) {
    if (graph.kept(q)) continue;
    const auto readers = graph.consumers(q);
    freed[readers.empty() ? graph.producer(q) : readers.back()] += graph.size(q);
  }
  for (OpId op = 0; op < graph.ops(); ++op) {
    for (TensorId q = graph.first_output(op); q < graph.first_output(op + 1); ++q)
      live += graph.size(q);
    const bool counts = op >= graph.done();
    if (counts && live + graph.workspace(op) > peak.bytes) peak = {live + graph.workspace(op), op};
    live -= freed[op];
  }
  return peak;
}

}  // namespace

ByteCount base_peak(const Graph& graph) {
  return find_base_peak(graph).bytes + graph.static_bytes();
}

OpId base_peak_op(const Graph& graph) {
  return find_base_peak(graph).op;
}

}  // namespace tessera::remat
