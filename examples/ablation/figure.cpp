#include "ablation/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "training/drawing.h"

namespace prenorm::ablation {
namespace {

using training::escaped;
using training::kColours;
using training::kDashes;
using training::pixels;

// Sizes in pixels.
constexpr double kPanelWidth = 300, kPanelHeight = 220, kGap = 34;
constexpr double kLeft = 82, kRight = 24, kBottom = 48, kTitle = 44, kLegendLine = 24, kPanelTitle = 30;
constexpr double kSample = 34;    // the line sample of a legend entry
constexpr double kCharacter = 7;  // width to allow for one, in a font of 13
constexpr double kRowGap = 30;

constexpr const char* kStyle = R"(
  svg { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 13px; }
  .paper { fill: #ffffff; } .ink { fill: #1a1a1a; } .soft { fill: #555555; }
  .frame { fill: none; stroke: #999999; } .grid { stroke: #e2e2e2; }
  .curve { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
  .title { font-size: 16px; font-weight: 600; } .depth { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #16181c; } .ink { fill: #ececec; } .soft { fill: #b4b4b4; }
    .frame { stroke: #6b6b6b; } .grid { stroke: #2e3238; }
  }
)";

class Svg {
 public:
  Svg(double width, double height, const std::string& title) {
    body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " + pixels(width) + " " +
            pixels(height) + "\" width=\"" + pixels(width) + "\" height=\"" + pixels(height) + "\">\n<title>" +
            escaped(title) + "</title>\n<style>" + kStyle + "</style>\n";
    rectangle(0, 0, width, height, "paper");
  }

  void rectangle(double x, double y, double width, double height, const char* style) {
    body_ += "<rect class=\"" + std::string(style) + "\" x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" width=\"" +
             pixels(width) + "\" height=\"" + pixels(height) + "\"/>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    body_ += "<line class=\"" + std::string(style) + "\" x1=\"" + pixels(x1) + "\" y1=\"" + pixels(y1) + "\" x2=\"" +
             pixels(x2) + "\" y2=\"" + pixels(y2) + "\"/>\n";
  }
  enum class Anchor { start, middle, end };
  void text(double x, double y, const std::string& words, const char* style, Anchor anchor = Anchor::start) {
    body_ += "<text class=\"" + std::string(style) + "\" x=\"" + pixels(x) + "\" y=\"" + pixels(y) +
             "\" text-anchor=\"" + kAnchors[static_cast<std::size_t>(anchor)] + "\">" + escaped(words) + "</text>\n";
  }
  void upright_text(double x, double y, const std::string& words, const char* style) {
    body_ += "<text class=\"" + std::string(style) + "\" text-anchor=\"middle\" transform=\"translate(" + pixels(x) +
             " " + pixels(y) + ") rotate(-90)\">" + escaped(words) + "</text>\n";
  }
  struct Point {
    double x, y;
  };
  // The line of a combination, by its number.
  void curve(const std::vector<Point>& points, std::size_t combination) {
    if (points.empty()) return;
    std::string list;
    for (const Point& p : points) list += (list.empty() ? "" : " ") + pixels(p.x) + "," + pixels(p.y);
    body_ += "<polyline class=\"curve\" stroke=\"" + std::string(kColours[combination % kColours.size()]) +
             "\" stroke-dasharray=\"" + kDashes[combination % kDashes.size()] + "\" points=\"" + list + "\"/>\n";
  }
  std::string finish() const { return body_ + "</svg>\n"; }

 private:
  static constexpr std::array<const char*, 3> kAnchors{"start", "middle", "end"};
  std::string body_;
};

struct Rectangle {
  double x, y, width, height;
};

// What the panels of one row show.
struct Quantity {
  const char* label;
  std::vector<double> Curves::*curve;
};
constexpr std::array<Quantity, 2> kQuantities{{{"loss", &Curves::loss}, {"gradient norm", &Curves::grad_norm}}};

bool is_drawn(double value) { return std::isfinite(value) && value > 0; }

// Whole decades around all values of a quantity.
struct Decades {
  int low, high;
};
Decades decades_of(const std::vector<Run>& runs, const Quantity& quantity) {
  double low = INFINITY, high = 0;
  for (const Run& run : runs) {
    for (double value : run.curves.*quantity.curve) {
      if (!is_drawn(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (high == 0) return {0, 1};
  const int from = static_cast<int>(std::floor(std::log10(low))), to = static_cast<int>(std::ceil(std::log10(high)));
  return {from, std::max(to, from + 1)};
}

std::string decade_label(int decade) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(decade) <= 4 ? "%.*f" : "%.*e", decade < 0 && decade >= -4 ? -decade : 0,
                std::pow(10.0, decade));
  return text;
}

// 1, 2 or 5 times a power of ten, so that about four of them fit.
std::int64_t tick_distance(std::int64_t steps) {
  for (std::int64_t power = 1;; power *= 10) {
    for (std::int64_t factor : {1, 2, 5}) {
      if (steps <= 4 * factor * power) return factor * power;
    }
  }
}

std::vector<std::int64_t> depths_of(const std::vector<Run>& runs) {
  std::vector<std::int64_t> depths;
  for (const Run& run : runs) {
    if (std::find(depths.begin(), depths.end(), run.variant.depth) == depths.end()) depths.push_back(run.variant.depth);
  }
  return depths;
}

std::vector<std::string> legend_of(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    const std::string name = combination(run.variant);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class Panel {
 public:
  Panel(Svg& svg, Rectangle where, Decades decades, std::int64_t steps)
      : svg_(svg), at_(where), decades_(decades), steps_(steps) {}

  void draw_axes(bool y_labels, bool x_labels) const {
    for (int decade = decades_.low; decade <= decades_.high; ++decade) {
      const double y = y_of(std::pow(10.0, decade));
      svg_.line(at_.x, y, at_.x + at_.width, y, "grid");
      if (y_labels) svg_.text(at_.x - 8, y + 4.5, decade_label(decade), "soft", Svg::Anchor::end);
    }
    const std::int64_t distance = tick_distance(steps_);
    for (std::int64_t step = 0; step <= steps_; step += distance) {
      const double x = x_of(step);
      svg_.line(x, at_.y, x, at_.y + at_.height, "grid");
      if (x_labels) svg_.text(x, at_.y + at_.height + 18, std::to_string(step), "soft", Svg::Anchor::middle);
    }
    svg_.rectangle(at_.x, at_.y, at_.width, at_.height, "frame");
  }

  // Values that cannot be drawn, such as NaN, leave a gap.
  void draw_curve(const std::vector<double>& values, std::size_t combination) const {
    std::vector<Svg::Point> points;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (is_drawn(values[i])) {
        points.push_back({x_of(static_cast<std::int64_t>(i) + 1), y_of(values[i])});
      } else {
        svg_.curve(points, combination);
        points.clear();
      }
    }
    svg_.curve(points, combination);
  }

 private:
  double x_of(std::int64_t step) const {
    return at_.x + at_.width * static_cast<double>(step) / static_cast<double>(steps_);
  }
  double y_of(double value) const {
    const double share = (std::log10(value) - decades_.low) / (decades_.high - decades_.low);
    return at_.y + at_.height * (1 - share);
  }

  Svg& svg_;
  Rectangle at_;
  Decades decades_;
  std::int64_t steps_;
};

// Where the entries of the legend stand: side by side, in as many lines as they need.
std::vector<Svg::Point> place_legend(const std::vector<std::string>& names, double width) {
  std::vector<Svg::Point> places;
  double x = 0, y = 0;
  for (const std::string& name : names) {
    const double needed = kSample + 8 + kCharacter * static_cast<double>(name.size()) + 24;
    if (x > 0 && x + needed > width) {
      x = 0;
      y += kLegendLine;
    }
    places.push_back({x, y});
    x += needed;
  }
  return places;
}

}  // namespace

std::string draw_figure(const std::vector<Run>& runs) {
  const std::vector<std::int64_t> depths = depths_of(runs);
  const std::vector<std::string> names = legend_of(runs);
  const auto columns = static_cast<double>(depths.size());
  const double inner = std::max(columns * kPanelWidth + (columns - 1) * kGap, 2 * kPanelWidth + kGap);
  const double panel_width = (inner - (columns - 1) * kGap) / columns;  // one panel takes the place of two
  const std::vector<Svg::Point> legend = place_legend(names, inner);
  const double top = kTitle + legend.back().y + kLegendLine + kPanelTitle;
  const double height = top + 2 * kPanelHeight + kRowGap + kBottom;
  Svg svg(kLeft + inner + kRight, height, "Loss and gradient norm by step, with and without residuals and norms");

  svg.text(kLeft, 27, "Residual connections and norms: loss and gradient norm", "ink title");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double x = kLeft + legend[i].x, y = kTitle + legend[i].y + 8;
    svg.curve({{x, y}, {x + kSample, y}}, i);
    svg.text(x + kSample + 8, y + 4.5, names[i], "ink");
  }

  std::int64_t steps = 1;
  for (const Run& run : runs) steps = std::max(steps, static_cast<std::int64_t>(run.curves.loss.size()));
  for (std::size_t row = 0; row < kQuantities.size(); ++row) {
    const Quantity& quantity = kQuantities[row];
    const Decades decades = decades_of(runs, quantity);
    const double y = top + static_cast<double>(row) * (kPanelHeight + kRowGap);
    svg.upright_text(22, y + kPanelHeight / 2, quantity.label, "ink");
    for (std::size_t column = 0; column < depths.size(); ++column) {
      const double x = kLeft + static_cast<double>(column) * (panel_width + kGap);
      if (row == 0)
        svg.text(x + panel_width / 2, y - 10, "depth " + std::to_string(depths[column]), "ink depth",
                 Svg::Anchor::middle);
      const Panel panel(svg, {x, y, panel_width, kPanelHeight}, decades, steps);
      panel.draw_axes(column == 0, row + 1 == kQuantities.size());
      for (const Run& run : runs) {
        if (run.variant.depth != depths[column]) continue;
        const auto number = std::find(names.begin(), names.end(), combination(run.variant)) - names.begin();
        panel.draw_curve(run.curves.*quantity.curve, static_cast<std::size_t>(number));
      }
    }
  }
  svg.text(kLeft + inner / 2, height - 10, "step", "ink", Svg::Anchor::middle);
  return svg.finish();
}

}  // namespace prenorm::ablation
