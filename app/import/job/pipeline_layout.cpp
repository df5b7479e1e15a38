#include "app/import/job/pipeline_layout.h"

#include <algorithm>
#include <cctype>

namespace tessera {
namespace {

constexpr std::size_t kMostParts = 100'000;

/// The layout without repetitions. `at` stands behind what was read.
std::string written_out(const std::string& text, std::size_t& at, int depth, std::string& fault) {
  std::string all;
  while (at < text.size() && text[at] != ')' && fault.empty()) {
    std::string part(1, text[at++]);
    if (part == "(") {
      if (depth > 16) fault = "brackets nest too deeply";
      part = written_out(text, at, depth + 1, fault);
      if (at >= text.size()) fault = "a bracket is not closed";
      ++at;
    }
    std::size_t times = 1;
    if (at < text.size() && text[at] == '*') {
      std::size_t digits = 0;
      while (at + 1 + digits < text.size() && digits < 6 &&
             std::isdigit(static_cast<unsigned char>(text[at + 1 + digits])))
        ++digits;
      if (digits == 0) fault = "a '*' has no number";
      times = digits > 0 ? std::stoul(text.substr(at + 1, digits)) : 1;
      at += 1 + digits;
    }
    if (times * part.size() > kMostParts - std::min(all.size(), kMostParts)) {
      fault = "it has more than 100000 parts";
      return all;
    }
    for (std::size_t i = 0; i < times; ++i) all += part;
  }
  return all;
}

}  // namespace

PipelineLayout parse_pipeline_layout(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    const bool counts =
        c != ',' && c != '"' && c != '\'' && !std::isspace(static_cast<unsigned char>(c));
    if (counts) plain += c;
  }
  PipelineLayout layout;
  std::size_t at = 0;
  const std::string parts = written_out(plain, at, 0, layout.fault);
  if (layout.fault.empty() && at < plain.size()) layout.fault = "a bracket is not open";
  layout.layers.push_back(0);
  std::size_t predicting = 0;  // stages up to the one of the last m
  for (std::size_t i = 0; i < parts.size() && layout.fault.empty(); ++i) {
    const char part = parts[i];
    if (part == '|') layout.layers.push_back(0);
    if (part == 't' || part == 'd') {
      ++layout.layers.back();
      if (predicting > 0) layout.fault = "a layer (t) is behind those that predict more (m)";
    } else if (part == 'm') {
      if (predicting > 0 && predicting != layout.layers.size())
        layout.fault = "layers that predict more (m) are in two stages";
      predicting = layout.layers.size();
      ++layout.predicts_more;
    } else if (part != 'E' && part != 'L' && part != '|')
      layout.fault = std::string("'") + part + "' is no part of a model";
    if (part == 'E' && i > 0) layout.fault = "the embedding (E) is not first";
    if (part == 'L' && i + 1 < parts.size()) layout.fault = "the loss (L) is not last";
  }
  layout.predicts_ahead = predicting > 0 && predicting + 1 == layout.layers.size();
  if (predicting > 0 && predicting + 1 < layout.layers.size())
    layout.fault = "a stage lies between those that predict more (m) and the loss (L)";
  return layout;
}

}  // namespace tessera
