#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/search/economy.h"
#include "app/search/search_layouts.h"

namespace tessera {

/// A model on so many GPUs of a cluster, with the layouts that were found for it.
struct SearchCase {
  std::string model;
  std::string cluster;
  std::string gpu;  ///< id of the catalog
  int gpus = 0;
  double parameters = 0;
  double tokens_per_step = 0;
  Bytes gpu_memory;
  Economy economy;
  SearchResult found;
  std::string framework = {};  ///< profile
  std::string precision = {};  ///< of products
  std::int64_t sequence_length = 0;
  std::int64_t global_batch = 0;                 ///< sequences
  std::vector<std::string> approximations = {};  ///< where it is not the job it stands for
  double memory_high = 1;                        ///< upper end of 80 % of peaks, over the simulated
  std::string memory_basis = {};                 ///< what that rests on

  /// The fastest layout; null where none fits.
  const LayoutResult* best() const { return found.fitting.empty() ? nullptr : &found.fitting[0]; }
};

/// By which the best case is chosen.
enum class SearchObjective : std::uint8_t { time, tokens_per_dollar, energy };

/// What is asked of several cases.
struct SearchQuestion {
  SearchObjective objective = SearchObjective::time;
  double tokens = 0;                       ///< to train on; 0: of a step
  std::optional<Seconds> deadline;         ///< for `tokens`
  std::optional<double> efficiency_floor;  ///< of tokens/s and GPU over those of the fewest GPUs
};

/// What the question compares by and nobody knows of these GPUs, as a field of a GPU: "price",
/// "tdp". Empty: nothing is missing.
std::string missing_figure(const SearchQuestion& question, const Economy& economy);

/// Throws InputError where none of `cases`, whose layouts need not be found yet, can be compared.
void check_comparable(const SearchQuestion& question, const std::vector<SearchCase>& cases);

/// Time of `layout` for the question's tokens.
Seconds time_for(const SearchQuestion& question, const SearchCase& of, const LayoutResult& layout);

/// Whether `layout` fits by what is simulated, but not with the error of that.
bool fits_within_error(const SearchCase& of, const LayoutResult& layout);

/// Position of the case that answers the question: of those that fit and meet the deadline, the
/// fastest, or the one with most tokens per dollar or least energy; with a deadline the cheapest.
/// Of equal ones the first. Empty where none does. Cases with a missing_figure() are passed over.
std::optional<std::size_t> best_case(const SearchQuestion& question,
                                     const std::vector<SearchCase>& cases);

/// Tokens per second and GPU over those of the case of the same model and cluster with the fewest
/// GPUs; empty where one of them does not fit.
std::optional<double> efficiency_of(const SearchCase& of, const std::vector<SearchCase>& cases);

/// The case with most parameters that fits, of those that `cases` holds; empty where none does.
std::optional<std::size_t> largest_model(const std::vector<SearchCase>& cases);

/// Simulated layouts that no other beats in step time and in memory at once, fastest first. GPUs,
/// dollars and energy of one case follow from the step time.
std::vector<const LayoutResult*> pareto_front(const SearchCase& of);

/// Answers as text and as a JSON document ("tessera.parallelism_plan/1").
std::string search_text(const SearchQuestion& question, const std::vector<SearchCase>& cases,
                        std::size_t top);
std::string search_json(const SearchQuestion& question, const std::vector<SearchCase>& cases,
                        std::size_t top);

}  // namespace tessera
