#include "training/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "training/drawing.h"

namespace prenorm::training {
namespace {

constexpr int kShades = 10;

// The shades run from dark blue to yellow, evenly in lightness, and are told apart by colour-blind readers too.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --paper: #fff; --desk: #f4f5f3; --ink: #1b222c; --soft: #55606e; --line: #d8dcdf; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #1b1f25; --desk: #14171b; --ink: #e6e9ec; --soft: #a5afba; --line: #353c45; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--desk); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 1.5rem; margin: 0 0 4px; } h2 { font-size: 1.15rem; margin: 32px 0 4px; }
p { margin: 4px 0 12px; color: var(--soft); max-width: 70ch; }
figure { margin: 12px 0; padding: 16px; background: var(--paper); border: 1px solid var(--line); border-radius: 10px; }
figcaption { font-weight: 600; margin-bottom: 8px; }
svg { display: block; max-width: 100%; height: auto; shape-rendering: geometricPrecision; }
svg.wide { min-width: 620px; } rect { shape-rendering: crispEdges; }
svg text { fill: var(--soft); font-size: 12px; } svg text.name { fill: var(--ink); }
.grid { stroke: var(--line); } .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.maps { display: flex; flex-wrap: wrap; gap: 16px; } .maps div { font-size: 0.88rem; color: var(--soft); }
details { margin-top: 10px; } summary { cursor: pointer; color: var(--soft); }
.scroll { overflow-x: auto; } pre { margin: 0; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; background: var(--paper); }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.s0{fill:#00224e}.s1{fill:#123570}.s2{fill:#3b496c}.s3{fill:#575d6d}.s4{fill:#707173}
.s5{fill:#8a8678}.s6{fill:#a59c74}.s7{fill:#c3b369}.s8{fill:#e1cc55}.s9{fill:#fee838}.gap{fill:none;stroke:var(--line)}
)";

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string text_at(double x, double y, const std::string& words, const char* anchor, const char* style = "") {
  return "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + anchor + "\" class=\"" + style +
         "\">" + escaped(words) + "</text>\n";
}

std::string svg_of(double width, double height, const std::string& title, const std::string& inside) {
  return std::string("<svg role=\"img\"") + (width > 600 ? " class=\"wide\"" : "") + " viewBox=\"0 0 " + pixels(width) +
         " " + pixels(height) + "\" width=\"" + pixels(width) + "\" height=\"" + pixels(height) + "\"><title>" +
         escaped(title) + "</title>\n" + inside + "</svg>\n";
}

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

std::string html_of(const Table& table) {
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr>";
  for (const std::string& cell : table.head) out += "<th scope=\"col\">" + escaped(cell) + "</th>";
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + escaped(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

// At most `most` of 0 … count - 1, evenly, with both ends.
std::vector<std::size_t> sample(std::size_t count, std::size_t most) {
  std::vector<std::size_t> picked;
  const std::size_t n = std::min(count, most);
  for (std::size_t i = 0; i < n; ++i) picked.push_back(n == 1 ? count - 1 : i * (count - 1) / (n - 1));
  return picked;
}

Table numbers_of(const std::vector<Series>& series, const std::string& x_label) {
  Table table{{x_label}, {}};
  std::vector<double> xs;
  for (const Series& one : series) {
    table.head.push_back(one.name);
    if (one.x.size() > xs.size()) xs = one.x;
  }
  for (std::size_t i : sample(xs.size(), 21)) {
    std::vector<std::string> row{digits(xs[i])};
    for (const Series& one : series) row.push_back(i < one.y.size() ? digits(one.y[i]) : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table numbers_of(const Grid& grid, const std::string& corner) {
  Table table{{corner}, {}};
  const std::vector<std::size_t> columns = sample(grid.columns.size(), 12);
  for (std::size_t c : columns) table.head.push_back(grid.columns[c]);
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    std::vector<std::string> row{grid.rows[r]};
    for (std::size_t c : columns) row.push_back(digits(grid.values[r * grid.columns.size() + c]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

// Where a value stands on its axis; NaN where it cannot.
double scaled(double value, bool logarithmic) {
  if (!std::isfinite(value) || (logarithmic && value <= 0)) return std::numeric_limits<double>::quiet_NaN();
  return logarithmic ? std::log10(value) : value;
}

Range range_of(const std::vector<double>& values, bool logarithmic, Range range = {}) {
  for (double value : values) {
    if (const double v = scaled(value, logarithmic); !std::isnan(v)) range.add(v);
  }
  return range;
}

// The cells of a grid; neighbours of one shade become one rectangle.
std::string cells(const Grid& grid, const Range& range, bool logarithmic, double left, double cell_width,
                  double cell_height) {
  std::string out;
  const std::size_t columns = grid.columns.size();
  const auto shade = [&](std::size_t r, std::size_t c) {
    const double v = scaled(grid.values[r * columns + c], logarithmic);
    return std::isnan(v) ? -1 : std::clamp(static_cast<int>(range.share(v) * kShades), 0, kShades - 1);
  };
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    for (std::size_t c = 0, end = 0; c < columns; c = end) {
      const int now = shade(r, c);
      while (end < columns && shade(r, end) == now) ++end;
      out += "<rect class=\"" + (now < 0 ? std::string("gap") : "s" + std::to_string(now)) + "\" x=\"" +
             pixels(left + static_cast<double>(c) * cell_width) + "\" y=\"" +
             pixels(static_cast<double>(r) * cell_height) + "\" width=\"" +
             pixels(static_cast<double>(end - c) * cell_width) + "\" height=\"" + pixels(cell_height) + "\"/>\n";
    }
  }
  return out;
}

}  // namespace

Report::Report(const std::string& title, const std::string& note) : title_(title) {
  body_ = "<h1>" + escaped(title) + "</h1>\n";
  paragraph(note);
}

void Report::heading(const std::string& text) { body_ += "<h2>" + escaped(text) + "</h2>\n"; }
void Report::paragraph(const std::string& text) { body_ += "<p>" + escaped(text) + "</p>\n"; }
void Report::preformatted(const std::string& text) {
  body_ += "<figure><div class=\"scroll\" tabindex=\"0\"><pre>" + escaped(text) + "</pre></div></figure>\n";
}

void Report::figure(const std::string& title, const std::string& drawing, const std::string& numbers) {
  body_ += "<figure><figcaption>" + escaped(title) + "</figcaption>\n<div class=\"scroll\" tabindex=\"0\">" + drawing +
           "</div>\n";
  if (!numbers.empty()) body_ += "<details><summary>numbers</summary>" + numbers + "</details>\n";
  body_ += "</figure>\n";
}

void Report::svg(const std::string& title, const std::string& element) { figure(title, element, ""); }

void Report::lines(const std::string& title, const std::string& x_label, const std::vector<Series>& series,
                   bool logarithmic) {
  constexpr double kLeft = 64, kWidth = 900, kHeight = 260, kTop = 10, kLegendLine = 22;
  Range x, y;
  for (const Series& one : series) {
    x = range_of(one.x, false, x);
    y = range_of(one.y, logarithmic, y);
  }
  if (y.low > y.high) return paragraph(title + ": there is nothing to draw");
  const auto x_of = [&](double v) { return kLeft + kWidth * x.share(v); };
  const auto y_of = [&](double v) { return kTop + kHeight * (1 - y.share(v)); };
  std::string inside;
  for (int tick = 0; tick <= 4; ++tick) {
    const double vx = std::round(x.low + (x.high - x.low) * tick / 4), vy = y.low + (y.high - y.low) * tick / 4;
    inside += "<line class=\"grid\" x1=\"" + pixels(kLeft) + "\" x2=\"" + pixels(kLeft + kWidth) + "\" y1=\"" +
              pixels(y_of(vy)) + "\" y2=\"" + pixels(y_of(vy)) + "\"/>\n" +
              text_at(kLeft - 8, y_of(vy) + 4, digits(logarithmic ? std::pow(10.0, vy) : vy), "end") +
              text_at(x_of(vx), kTop + kHeight + 18, digits(vx), "middle");
  }
  inside += text_at(kLeft + kWidth / 2, kTop + kHeight + 36, x_label, "middle");
  double legend_x = kLeft, legend_y = kTop + kHeight + 60;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string style = "<polyline class=\"curve\" stroke=\"" + std::string(kColours[i % kColours.size()]) +
                              "\" stroke-dasharray=\"" + kDashes[i % kDashes.size()] + "\" points=\"";
    std::string points;
    for (std::size_t p = 0; p <= series[i].y.size(); ++p) {
      const double v = p < series[i].y.size() ? scaled(series[i].y[p], logarithmic) : NAN;
      if (!std::isnan(v)) {
        points += pixels(x_of(series[i].x[p])) + "," + pixels(y_of(v)) + " ";
      } else if (!points.empty()) {
        inside += style + points + "\"/>\n";
        points.clear();
      }
    }
    const double needed = 60 + 7.2 * static_cast<double>(series[i].name.size());
    if (legend_x > kLeft && legend_x + needed > kLeft + kWidth) {
      legend_x = kLeft;
      legend_y += kLegendLine;
    }
    inside += style + pixels(legend_x) + "," + pixels(legend_y - 4) + " " + pixels(legend_x + 30) + "," +
              pixels(legend_y - 4) + "\"/>\n" + text_at(legend_x + 38, legend_y, series[i].name, "start", "name");
    legend_x += needed;
  }
  figure(title, svg_of(kLeft + kWidth + 20, legend_y + 12, title, inside), html_of(numbers_of(series, x_label)));
}

void Report::heat_map(const std::string& title, const std::string& x_label, const Grid& grid, bool logarithmic) {
  constexpr double kLeft = 110, kWidth = 854, kRow = 18;
  const Range range = range_of(grid.values, logarithmic);
  if (range.low > range.high) return paragraph(title + ": there is nothing to draw");
  const double columns = static_cast<double>(grid.columns.size()),
               height = kRow * static_cast<double>(grid.rows.size());
  std::string inside = cells(grid, range, logarithmic, kLeft, kWidth / columns, kRow);
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    inside += text_at(kLeft - 8, kRow * static_cast<double>(r) + 13, grid.rows[r], "end");
  }
  for (std::size_t c : sample(grid.columns.size(), 5)) {
    inside +=
        text_at(kLeft + kWidth / columns * (static_cast<double>(c) + 0.5), height + 16, grid.columns[c], "middle");
  }
  inside += text_at(kLeft + kWidth / 2, height + 34, x_label, "middle");
  for (int shade = 0; shade < kShades; ++shade) {
    inside += "<rect class=\"s" + std::to_string(shade) + "\" x=\"" + pixels(kLeft + 24.0 * shade) + "\" y=\"" +
              pixels(height + 46) + "\" width=\"24\" height=\"12\"/>\n";
  }
  const auto value = [&](double v) { return digits(logarithmic ? std::pow(10.0, v) : v); };
  inside += text_at(kLeft - 8, height + 56, value(range.low), "end") +
            text_at(kLeft + 24.0 * kShades + 8, height + 56, value(range.high), "start");
  figure(title, svg_of(kLeft + kWidth + 10, height + 66, title, inside), html_of(numbers_of(grid, "")));
}

void Report::square_maps(const std::string& title, const std::vector<std::pair<std::string, Grid>>& maps) {
  constexpr double kSize = 150;
  const Range range{0, 1};
  const auto root = [](Grid grid) {  // weights of rows that look at much are small, and are to be seen too
    for (double& value : grid.values) value = std::sqrt(value);
    return grid;
  };
  std::string drawing = "<div class=\"maps\">\n", numbers;
  for (const auto& [name, grid] : maps) {
    const double cell = kSize / static_cast<double>(grid.columns.size());
    drawing += "<div>" + svg_of(kSize, kSize, name, cells(root(grid), range, false, 0, cell, cell)) + escaped(name) +
               "</div>\n";
    numbers += "<p>" + escaped(name) + "</p>" + html_of(numbers_of(grid, "query"));
  }
  drawing += "</div>\n<p>A query a row, a key a column; dark is 0, yellow is 1, shades by the square root.</p>\n";
  figure(title, drawing, numbers);
}

std::string Report::html() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
         escaped(title_) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<main>\n" + body_ +
         "</main>\n</body>\n</html>\n";
}

}  // namespace prenorm::training
