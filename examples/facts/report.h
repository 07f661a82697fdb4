// A fact from a paper or from algebra, reproduced: where it is from, the setting, and numbers with the range that each
// must lie in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prenorm::facts {

class Report {
 public:
  // Prints a sentence or two, broken into lines, after a word that says what they are.
  static void paragraph(std::string_view label, std::string_view text);
  static void setting(std::string_view text) { paragraph("setting", text); }
  static void say(std::string_view text) { paragraph("", text); }

  // Prints a line: a number that must lie in [low, high]. NaN lies nowhere.
  void expect(std::string_view what, double got, double low, double high);
  // The same for a number that must only not be larger, or not be smaller.
  void at_most(std::string_view what, double got, double high);
  void at_least(std::string_view what, double got, double low);
  // A number, or a few words, that nothing is asked of.
  static void tell(std::string_view what, std::string_view got);

  int compared() const { return compared_; }
  int outside() const { return outside_; }

 private:
  void judge(std::string_view what, std::string_view range, double got, bool inside);

  int compared_ = 0, outside_ = 0;
};

struct Fact {
  std::string_view name;    // to call it by
  std::string_view title;   // what is claimed
  std::string_view source;  // by whom
  void (*show)(Report&);
};

std::vector<Fact> gradient_facts();    // gradients.cpp
std::vector<Fact> value_facts();       // values.cpp
std::vector<Fact> layer_norm_facts();  // layer_norm.cpp
std::vector<Fact> path_facts();        // paths.cpp
std::vector<Fact> training_facts();    // warm_up.cpp

// Four significant digits, "3.131" or "5.1e-11".
std::string number(double value);

}  // namespace prenorm::facts
