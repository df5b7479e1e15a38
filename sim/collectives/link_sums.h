#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hw/topology/topology.h"

namespace tessera {

/// Something that links carry, added up route by route. Terms are kept as they come and merged now
/// and then: a tree with a node per link costs twice as much, for the few links of most routes.
class LinkSums {
 public:
  void add(LinkId link, double amount) {
    terms_.push_back({link, amount});
    if (terms_.size() < merge_at_) return;
    merge();
    merge_at_ = 2 * terms_.size() + kTerms;
  }
  void add(const Route& route, double amount) {
    for (const LinkId link : route.links) add(link, amount);
  }
  /// Ascending by link, as `Entry{link, sum}`.
  template <class Entry>
  std::vector<Entry> list() {
    merge();
    std::vector<Entry> sums;
    sums.reserve(terms_.size());
    for (const Term& term : terms_) sums.push_back({term.link, term.amount});
    return sums;
  }

 private:
  static constexpr std::size_t kTerms = 4096;  ///< that are kept at least before they are merged

  struct Term {
    LinkId link;
    double amount = 0;
  };

  /// One term per link. Terms of a link are added in the order in which they came.
  void merge() {
    std::ranges::stable_sort(terms_, {}, &Term::link);
    std::size_t merged = 0;
    for (const Term& term : terms_) {
      if (merged > 0 && terms_[merged - 1].link == term.link) {
        terms_[merged - 1].amount += term.amount;
      } else {
        terms_[merged++] = term;
      }
    }
    terms_.resize(merged);
  }

  std::vector<Term> terms_;
  std::size_t merge_at_ = kTerms;
};

}  // namespace tessera
