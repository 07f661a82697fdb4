// What papers and algebra say of norms and residual connections, reproduced in small: each fact with its setting, the
// range that the number must lie in, and the number.

#include <cstdio>
#include <vector>

#include "chosen.h"
#include "facts/report.h"
#include "facts/stack.h"

using namespace prenorm::facts;

namespace {

std::vector<Fact> all_facts() {
  std::vector<Fact> all;
  for (const auto& group : {gradient_facts(), value_facts(), layer_norm_facts(), path_facts(), training_facts()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

int width(std::string_view text) { return static_cast<int>(text.size()); }

// 0: all numbers are inside their ranges; 1: not so.
int show(const std::vector<Fact>& facts) {
  int compared = 0, outside = 0;
  Report().paragraph("the stack", kStack);
  std::printf("\n");
  for (const Fact& fact : facts) {
    Report report;
    std::printf("%.*s: %.*s\n  source    %.*s\n", width(fact.name), fact.name.data(), width(fact.title),
                fact.title.data(), width(fact.source), fact.source.data());
    fact.show(report);
    std::printf("\n");
    compared += report.compared();
    outside += report.outside();
  }
  std::printf("%zu fact%s, %d numbers: %d inside their range, %d outside\n", facts.size(), facts.size() == 1 ? "" : "s",
              compared, compared - outside, outside);
  return outside == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return prenorm::show_chosen(
      argc, argv, "facts",
      "Reproduces what papers and algebra say of norms and residual connections: each fact with its\n"
      "source, its setting, and numbers beside the range they must lie in. Exits with 1 if one lies\n"
      "outside.",
      "fact", "facts", all_facts(), show);
}
