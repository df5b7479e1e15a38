#include "sim/remat/io/integer_program.h"

#include <algorithm>
#include <limits>
#include <map>

#include "hw/units/formatted.h"

namespace tessera::remat {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kRoom = 1000;  ///< in units of the rows of memory

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, ByteCount budget)
      : graph_(graph),
        bytes_per_unit_(static_cast<double>(budget - graph.static_bytes()) / kRoom) {}

  IntegerProgram run() && {
    for (int t = 0; t <= graph_.ops(); ++t) add_stage(t);
    for (const TensorId q : graph_.kept_tensors())
      program_.rows.push_back({{{kept_in(graph_.ops() + 1, q), 1.0}}, 1, kNone});
    return std::move(program_);
  }

 private:
  static constexpr int kAbsent = -1;
  using Terms = IntegerProgram::Terms;

  int add(std::string name, bool integer, bool one = false) {
    program_.variables.push_back({std::move(name), integer, one});
    return static_cast<int>(program_.variables.size()) - 1;
  }
  static std::string name(char letter, int t, int i) {
    return std::string(1, letter) + "_" + std::to_string(t) + "_" + std::to_string(i);
  }

  /// Whether operator `op` runs in stage t; kAbsent: it cannot.
  int run_in(int t, OpId op) {
    if (op > t || (op < t && !graph_.recomputable(op))) return kAbsent;
    const auto [entry, is_new] = runs_.try_emplace({t, op}, kAbsent);
    if (!is_new) return entry->second;
    entry->second = add(name('r', t, op), true, op == t);
    if (op < t)
      program_.objective.emplace_back(entry->second, static_cast<double>(graph_.time(op)) /
                                                         static_cast<double>(graph_.base_time()));
    return entry->second;
  }
  /// Whether tensor q stays from stage t - 1 to stage t.
  int kept_in(int t, TensorId q) {
    if (t <= graph_.producer(q)) return kAbsent;
    const auto [entry, is_new] = kept_.try_emplace({t, q}, kAbsent);
    if (is_new) entry->second = add(name('s', t, q), true);
    return entry->second;
  }

  void at_most(Terms terms, double most) {
    std::erase_if(terms, [](const auto& term) { return term.first == kAbsent; });
    program_.rows.push_back({std::move(terms), -kNone, most});
  }
  void add_stage(int t) {
    const int last = std::min<int>(t, graph_.ops() - 1);
    for (OpId op = 0; op <= last; ++op) {
      const int runs = run_in(t, op);
      if (runs == kAbsent) continue;
      for (const TensorId q : graph_.inputs(op))
        at_most({{runs, 1}, {kept_in(t, q), -1}, {run_in(t, graph_.producer(q)), -1}}, 0);
    }
    for (TensorId q = 0; q < graph_.tensors() && graph_.producer(q) <= last; ++q)
      at_most({{kept_in(t + 1, q), 1}, {kept_in(t, q), -1}, {run_in(t, graph_.producer(q)), -1}},
              0);
    add_memory(t, last);
  }

  void add_memory(int t, int last) {
    Terms used;
    for (TensorId q = 0; q < graph_.tensors(); ++q)
      if (const int kept = kept_in(t, q); kept != kAbsent)
        used.emplace_back(kept, units(graph_.size(q)));
    for (OpId op = 0; op <= last; ++op) {
      const int runs = run_in(t, op);
      if (runs == kAbsent) continue;
      double made = 0;
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
        made += units(graph_.size(q));
      used.emplace_back(runs, made);
      Terms now = used;
      now.emplace_back(runs, units(graph_.workspace(op)));
      at_most(std::move(now), kRoom);
      for (const TensorId q : graph_.inputs(op)) free_behind(t, op, q, last, used);
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
        free_behind(t, op, q, last, used);
    }
  }

  /// f <= r of the operator, 1 - s of the next stage, 1 - r of every later reader in this one: at
  /// whole numbers f is the least of them.
  void free_behind(int t, OpId op, TensorId q, int last, Terms& used) {
    const int freed = add(name('f', t, op) + "_" + std::to_string(q), false);
    at_most({{freed, 1}, {run_in(t, op), -1}}, 0);
    at_most({{freed, 1}, {kept_in(t + 1, q), 1}}, 1);
    for (const OpId reader : graph_.consumers(q)) {
      if (reader <= op || reader > last) continue;
      if (const int runs = run_in(t, reader); runs != kAbsent) at_most({{freed, 1}, {runs, 1}}, 1);
    }
    used.emplace_back(freed, -units(graph_.size(q)));
  }
  double units(ByteCount bytes) const { return static_cast<double>(bytes) / bytes_per_unit_; }

  const Graph& graph_;
  double bytes_per_unit_;
  IntegerProgram program_;
  std::map<std::pair<int, int>, int> runs_, kept_;
};

/// Terms of one variable together, in the order of variables.
std::map<int, double> collected(const IntegerProgram::Terms& terms) {
  std::map<int, double> sums;
  for (const auto& [variable, factor] : terms) sums[variable] += factor;
  return sums;
}

std::string number(double value) {
  return formatted("%.12g", value);
}

std::string lp_terms(const IntegerProgram& program, const IntegerProgram::Terms& terms) {
  std::string text;
  for (const auto& [variable, factor] : collected(terms)) {
    if (factor == 0) continue;
    text += (factor < 0 ? " - " : " + ") + number(factor < 0 ? -factor : factor) + " " +
            program.variables[static_cast<std::size_t>(variable)].name + "\n";
  }
  return text;
}

constexpr const char* kConstant = "base";

}  // namespace

IntegerProgram recompute_program(const Graph& graph, ByteCount budget) {
  return ProgramBuilder(graph, budget).run();
}

std::string lp_text(const IntegerProgram& program) {
  std::string text = "Minimize\n cost:\n" + lp_terms(program, program.objective) + " + " +
                     kConstant + "\nSubject To\n";
  for (std::size_t i = 0; i < program.rows.size(); ++i) {
    const IntegerProgram::Row& row = program.rows[i];
    const bool above = row.most == kNone;
    text += " c" + std::to_string(i) + ":\n" + lp_terms(program, row.terms) +
            (above ? " >= " : " <= ") + number(above ? row.least : row.most) + "\n";
  }
  text += std::string("Bounds\n ") + kConstant + " = 1\n";
  std::string integers;
  for (const IntegerProgram::Variable& variable : program.variables) {
    text += variable.one ? " " + variable.name + " = 1\n" : " 0 <= " + variable.name + " <= 1\n";
    if (variable.integer) integers += " " + variable.name + "\n";
  }
  return text + "Generals\n" + integers + "End\n";
}

std::string mps_text(const IntegerProgram& program) {
  std::string text = "NAME recompute\nROWS\n N cost\n";
  std::vector<std::string> columns(program.variables.size());
  const auto put = [&](const IntegerProgram::Terms& terms, const std::string& row) {
    for (const auto& [variable, factor] : collected(terms)) {
      const auto v = static_cast<std::size_t>(variable);
      columns[v] += " " + program.variables[v].name + " " + row + " " + number(factor) + "\n";
    }
  };
  put(program.objective, "cost");
  std::string sides;
  for (std::size_t i = 0; i < program.rows.size(); ++i) {
    const IntegerProgram::Row& row = program.rows[i];
    const bool above = row.most == kNone;
    const std::string name = "c" + std::to_string(i);
    text += (above ? " G " : " L ") + name + "\n";
    put(row.terms, name);
    sides += " rhs " + name + " " + number(above ? row.least : row.most) + "\n";
  }
  text += std::string("COLUMNS\n ") + kConstant + " cost 1\n";
  std::string bounds = std::string(" FX bound ") + kConstant + " 1\n";
  for (std::size_t v = 0; v < columns.size(); ++v) {
    const IntegerProgram::Variable& variable = program.variables[v];
    text += columns[v];
    if (variable.integer && !variable.one) bounds += " BV bound " + variable.name + "\n";
    if (!variable.integer) bounds += " UP bound " + variable.name + " 1\n";
    if (variable.one) bounds += " FX bound " + variable.name + " 1\n";
  }
  return text + "RHS\n" + sides + "BOUNDS\n" + bounds + "ENDATA\n";
}

}  // namespace tessera::remat
