//===- LossCurve.cpp - A training's losses as a picture -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Metrics.h"

#include "support/Division.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <limits>

using namespace tprt;

static constexpr double width = 800, height = 480;
static constexpr double left = 80, right = 20, top = 50, bottom = 60;
static constexpr size_t maxPoints = 700; // about the width in pixels

__attribute__((format(printf, 1, 2))) static std::string
format(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

static std::string escape(const std::string &text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '&'   ? "&amp;"
               : c == '<' ? "&lt;"
               : c == '>' ? "&gt;"
                          : std::string(1, c);
  return escaped;
}

namespace {

/// A range of numbers, and how it maps to the picture.
struct Axis {
  double low, high, from, to;

  double place(double value) const {
    return from + (value - low) / (high - low) * (to - from);
  }
  /// A tick distance of 1, 2 or 5 times a power of ten that gives about `count`
  /// numbers on the axis.
  double getTick(double count) const {
    double rough = (high - low) / count;
    double power = std::pow(10, std::floor(std::log10(rough)));
    for (double factor : {1.0, 2.0, 5.0})
      if (factor * power >= rough)
        return factor * power;
    return 10 * power;
  }
};

} // namespace

/// Means over ranges of steps, each placed at the last step of its range.
static LossHistory condense(const LossHistory &losses) {
  size_t group = divideCeil(losses.size(), maxPoints);
  LossHistory means;
  for (size_t i = 0; i < losses.size(); i += group) {
    size_t end = std::min(i + group, losses.size());
    double sum = 0;
    for (size_t k = i; k < end; ++k)
      sum += losses[k].second;
    means.emplace_back(losses[end - 1].first, sum / (end - i));
  }
  return means;
}

static Axis makeAxis(double low, double high, double from, double to) {
  if (!(low < high)) { // one value, or none
    double margin = std::max(std::abs(low) * 0.5, 0.5);
    low -= margin;
    high += margin;
  }
  return {low, high, from, to};
}

static std::string drawAxes(const Axis &x, const Axis &y) {
  std::string svg;
  double tick = y.getTick(6);
  for (double v = std::ceil(y.low / tick) * tick; v <= y.high + tick * 1e-6;
       v += tick)
    svg += format("<line x1=\"%g\" y1=\"%.2f\" x2=\"%g\" y2=\"%.2f\" "
                  "stroke=\"#ddd\"/>\n"
                  "<text x=\"%g\" y=\"%.2f\" text-anchor=\"end\" "
                  "dy=\"0.35em\">%.6g</text>\n",
                  left, y.place(v), width - right, y.place(v), left - 8,
                  y.place(v), std::abs(v) < tick * 1e-6 ? 0 : v);
  tick = std::max(x.getTick(8), 1.0); // steps are integers
  for (double v = std::ceil(x.low / tick) * tick; v <= x.high + tick * 1e-6;
       v += tick)
    svg += format("<line x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\" "
                  "stroke=\"#333\"/>\n"
                  "<text x=\"%.2f\" y=\"%g\" text-anchor=\"middle\">%.9g"
                  "</text>\n",
                  x.place(v), height - bottom, x.place(v), height - bottom + 5,
                  x.place(v), height - bottom + 20, v);
  svg += format("<path d=\"M%g %g V%g H%g\" fill=\"none\" stroke=\"#333\"/>\n",
                left, top, height - bottom, width - right);
  svg += format("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">step</text>\n",
                (left + width - right) / 2, height - 15);
  svg += format("<text transform=\"translate(20 %g) rotate(-90)\" "
                "text-anchor=\"middle\">loss</text>\n",
                (top + height - bottom) / 2);
  return svg;
}

std::string tprt::drawLossCurve(const LossHistory &losses,
                                const std::string &title) {
  LossHistory points = condense(losses);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto &[step, loss] : points)
    if (std::isfinite(loss)) {
      low = std::min(low, loss);
      high = std::max(high, loss);
    }
  if (low > high)
    low = high = 0;
  double first = points.empty() ? 0 : points.front().first;
  double last = points.empty() ? 1 : points.back().first;
  double margin = (high - low) * 0.05;
  Axis x = makeAxis(first, last, left, width - right);
  Axis y = makeAxis(low - margin, high + margin, height - bottom, top);

  std::string path;
  bool isDown = false; // the pen
  for (const auto &[step, loss] : points) {
    if (std::isfinite(loss))
      path += format("%c%.2f %.2f", isDown ? 'L' : 'M', x.place(step),
                     y.place(loss));
    isDown = std::isfinite(loss);
  }
  std::string svg =
      format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
             "font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
             width, height);
  std::string name = escape(title);
  svg += "<title>" + name + "</title>\n";
  svg += format("<text x=\"%g\" y=\"28\" text-anchor=\"middle\" "
                "font-size=\"16\">",
                width / 2) +
         name + "</text>\n";
  svg += drawAxes(x, y);
  svg += "<path d=\"" + path +
         "\" fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"1.5\" "
         "stroke-linejoin=\"round\"/>\n</svg>\n";
  return svg;
}
