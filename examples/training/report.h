// A training run as one HTML file that needs nothing but a browser: figures, each with its numbers in a table behind
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prenorm::training {

// A line of a figure; values that are not finite leave a gap.
struct Series {
  std::string name;
  std::vector<double> x, y;
};

// Numbers by row and column, row-major.
struct Grid {
  std::vector<std::string> rows, columns;
  std::vector<double> values;
};

// Built from top to bottom. Light or dark as the reader's system is; nothing is told by colour alone.
class Report {
 public:
  Report(const std::string& title, const std::string& note);

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void preformatted(const std::string& text);
  // Lines over a common x axis, the y axis logarithmic where wanted (then only values above 0 are drawn).
  void lines(const std::string& title, const std::string& x_label, const std::vector<Series>& series, bool logarithmic);
  // A heat-map with a row for each row of the grid; ten shades, of the logarithm where wanted.
  void heat_map(const std::string& title, const std::string& x_label, const Grid& grid, bool logarithmic);
  // Small square heat-maps side by side, of values from 0 to 1: attention weights, a query a row, a key a column.
  void square_maps(const std::string& title, const std::vector<std::pair<std::string, Grid>>& maps);
  // A figure made elsewhere: an svg element.
  void svg(const std::string& title, const std::string& element);

  std::string html() const;

 private:
  void figure(const std::string& title, const std::string& drawing, const std::string& numbers);

  std::string title_, body_;
};

}  // namespace prenorm::training
