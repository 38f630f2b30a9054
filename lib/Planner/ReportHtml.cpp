//===- ReportHtml.cpp - the answer of a search as one page ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Text.h"
#include "drover/Cluster/Markup.h"
#include "drover/Cluster/PlacementPicture.h"
#include "drover/Planner/Report.h"
#include "drover/Planner/Timeline.h"
#include <algorithm>
#include <map>
#include <sstream>

using namespace drover;
using namespace drover::planner;
using cluster::escapeMarkup;

namespace {

// Pixels.
constexpr double kWidth = 1080, kLabelWidth = 150, kBarHeight = 18, kBarGap = 5;
constexpr size_t kMostBars = 64;

/// One color a part, told apart by readers who do not see red against green (Okabe and Ito 2008, and lighter ones).
constexpr const char *kPalette[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
                                    "#f0e442", "#7f7f7f", "#b8c0c8", "#8c6bb1", "#a6761d", "#444b53"};

constexpr const char *kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; color: #24292f; background: #fff; margin: 2em auto; max-width: 1120px; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: .2em; } h2 { font-size: 1.15em; margin: 2em 0 .5em; border-bottom: 1px solid #d0d7de; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 3px 9px; text-align: right; border-bottom: 1px solid #eaeef2; }
th { background: #f6f8fa; } tr.best td { font-weight: 600; background: #eef6ff; } tr.over td { color: #b42318; }
pre { background: #f6f8fa; padding: .8em; overflow-x: auto; font-size: 13px; white-space: pre-wrap; }
.big { font-size: 1.25em; } .note { color: #57606a; font-size: 13px; } svg { max-width: 100%; height: auto; } .scroll { overflow-x: auto; }
.figures span { display: inline-block; margin-right: 2.2em; } .figures b { font-size: 1.35em; display: block; })";

using Parts = std::vector<std::pair<const char *, double>>;

std::string tenth(double value) { return fixed(value, 1); }

/// A drawing as wide as the page.
std::string drawing(double height, const std::string &elements) {
  return "<svg viewBox=\"0 0 " + fixed(kWidth, 0) + " " + fixed(height, 0) + "\" width=\"" + fixed(kWidth, 0) +
         "\" font-family=\"sans-serif\" font-size=\"12\">" + elements + "</svg>\n";
}

/// Squares with their names, colors first, in lines from `left`; returns where they end.
double drawLegend(std::ostream &os, const std::vector<std::pair<const char *, std::string>> &entries, double left,
                  double y) {
  double x = left;
  for (const auto &[color, name] : entries) {
    double width = 22 + 7.2 * static_cast<double>(name.size());
    if (x + width > kWidth)
      x = left, y += 18;
    os << "<rect x=\"" << tenth(x) << "\" y=\"" << tenth(y) << "\" width=\"10\" height=\"10\" fill=\"" << color
       << "\"/><text x=\"" << tenth(x + 14) << "\" y=\"" << tenth(y + 9.5) << "\">" << escapeMarkup(name) << "</text>";
    x += width;
  }
  return y + 14;
}

/// Bars of parts on one scale, each with a label, a legend below, and a line where something ends.
class BarChart {
public:
  void add(const std::string &label, const Parts &parts, const std::string &total) {
    bars.push_back({label, parts, total});
  }
  void setLimit(double value, const std::string &text) { limit = value, limitText = text; }

  std::string draw(const std::function<std::string(double)> &format) const {
    double most = limit;
    for (const Bar &bar : bars)
      most = std::max(most, sumOf(bar.parts));
    double room = kWidth - kLabelWidth - 110, scale = most > 0 ? room / most : 0, y = 18;
    std::ostringstream os;
    for (const Bar &bar : bars) {
      os << "<text x=\"0\" y=\"" << y + 13 << "\">" << escapeMarkup(bar.label) << "</text>";
      double x = kLabelWidth;
      for (size_t i = 0; i < bar.parts.size(); ++i) {
        double width = std::max(0.0, bar.parts[i].second) * scale;
        if (width > 0.05)
          os << "<rect x=\"" << tenth(x) << "\" y=\"" << y << "\" width=\"" << tenth(width) << "\" height=\""
             << kBarHeight << "\" fill=\"" << kPalette[i % std::size(kPalette)] << "\"><title>"
             << escapeMarkup(bar.label + ", " + bar.parts[i].first + ": " + format(bar.parts[i].second))
             << "</title></rect>";
        x += width;
      }
      os << "<text x=\"" << tenth(x + 6) << "\" y=\"" << y + 13 << "\">" << escapeMarkup(bar.total) << "</text>\n";
      y += kBarHeight + kBarGap;
    }
    if (limit > 0) {
      double x = kLabelWidth + limit * scale;
      os << "<line x1=\"" << tenth(x) << "\" x2=\"" << tenth(x) << "\" y1=\"14\" y2=\"" << y
         << "\" stroke=\"#b42318\" stroke-dasharray=\"4 3\"/><text x=\"" << tenth(x)
         << "\" y=\"11\" text-anchor=\"end\" fill=\"#b42318\">" << escapeMarkup(limitText) << "</text>\n";
    }
    y = drawLegend(os, legend(), kLabelWidth, y + 8);
    return drawing(y + 8, os.str());
  }

private:
  struct Bar {
    std::string label;
    Parts parts;
    std::string total;
  };
  static double sumOf(const Parts &parts) {
    double sum = 0;
    for (auto [name, value] : parts)
      sum += std::max(0.0, value);
    return sum;
  }
  /// Of parts that some bar has.
  std::vector<std::pair<const char *, std::string>> legend() const {
    std::vector<std::pair<const char *, std::string>> entries;
    for (size_t i = 0; !bars.empty() && i < bars.front().parts.size(); ++i)
      if (std::any_of(bars.begin(), bars.end(), [&](const Bar &bar) { return bar.parts[i].second > 0; }))
        entries.emplace_back(kPalette[i % std::size(kPalette)], bars.front().parts[i].first);
    return entries;
  }

  std::vector<Bar> bars;
  double limit = 0;
  std::string limitText;
};

/// Lanes of every stage along the time of a step: one path a color and row, since there are thousands of spans.
std::string drawTimeline(const DetailedPlan &plan) {
  constexpr const char *colors[] = {"#0072b2", "#e69f00", "#009e73", "#8c959f",
                                    "#8c6bb1", "#d55e00", "#d0d7de", "#444b53"};
  std::vector<TimelineSpan> spans = timelineOf(plan);
  auto stages = static_cast<double>(plan.program.stages());
  double end = plan.ranked.projection.stepSeconds, left = 60, scale = (kWidth - left) / end;
  double compute = std::clamp(420 / stages, 4., 16.), thin = std::clamp(compute / 5, 1., 3.);
  double row = compute + 3 * thin + 3;
  std::map<std::pair<int, bool>, std::string> paths;
  for (const TimelineSpan &span : spans) {
    double top = 4 + span.stage * row, height = compute;
    switch (span.lane) {
    case ReplayProgram::Compute:
      break;
    case ReplayProgram::Gather:
    case ReplayProgram::Reduce:
      top += compute + 2 * thin, height = thin;
      break;
    default: // sends above receives
      bool sends = span.lane == ReplayProgram::ForwardSend || span.lane == ReplayProgram::BackwardSend;
      top += compute + (sends ? 0 : thin), height = thin;
    }
    bool odd = span.kind <= TimelineSpan::WeightGradient && (span.chunk / static_cast<uint32_t>(stages)) % 2;
    double width = std::max(0.2, (span.end - span.start) * scale);
    paths[{span.kind, odd}] += "M" + tenth(left + span.start * scale) + " " + tenth(top) + "h" + tenth(width) + "v" +
                               tenth(height) + "h-" + tenth(width) + "z";
  }
  std::ostringstream os;
  for (const auto &[key, path] : paths)
    os << "<path d=\"" << path << "\" fill=\"" << colors[key.first] << "\" fill-opacity=\"" << (key.second ? 0.6 : 1)
       << "\"/>\n";
  double step = stages > 32 ? 8 : 1;
  for (double stage = 0; stage < stages; stage += step)
    os << "<text x=\"0\" y=\"" << tenth(4 + stage * row + compute * 0.75) << "\" font-size=\""
       << tenth(std::min(12., compute + 4)) << "\">stage " << fixed(stage, 0) << "</text>";
  double y = 4 + stages * row + 12;
  for (int i = 0; i <= 10; ++i) {
    double x = left + (kWidth - left) * i / 10;
    os << "<text x=\"" << tenth(x) << "\" y=\"" << tenth(y) << "\" text-anchor=\"" << (i == 10 ? "end" : "middle")
       << "\">" << duration(end * i / 10) << "</text>";
  }
  std::vector<std::pair<const char *, std::string>> entries;
  for (int kind = 0; kind <= TimelineSpan::Optimizer; ++kind)
    if (paths.count({kind, false}) || paths.count({kind, true}))
      entries.emplace_back(colors[kind], nameOf(static_cast<TimelineSpan::Kind>(kind)));
  y = drawLegend(os, entries, left, y + 11);
  return drawing(y + 8, os.str());
}

/// Memory of the fullest stage across, time of a step up.
std::string drawPareto(const std::vector<ParetoPoint> &points) {
  constexpr double height = 260, left = 70, bottom = 36;
  double mostBytes = 0, mostSeconds = 0;
  for (const ParetoPoint &point : points) {
    mostBytes = std::max(mostBytes, point.plan.peakBytes());
    mostSeconds = std::max(mostSeconds, point.plan.projection.stepSeconds);
  }
  auto placeX = [&](double bytes) { return left + bytes / (1.05 * mostBytes) * (kWidth - left - 20); };
  auto placeY = [&](double seconds) { return height - bottom - seconds / (1.1 * mostSeconds) * (height - bottom); };
  std::ostringstream os;
  os << "<path d=\"M" << left << " 0V" << height - bottom << "H" << kWidth << "\" fill=\"none\" stroke=\"#8c959f\"/>";
  std::string line;
  for (const ParetoPoint &point : points) {
    double x = placeX(point.plan.peakBytes()), y = placeY(point.plan.projection.stepSeconds);
    line += (line.empty() ? "M" : "L") + tenth(x) + " " + tenth(y);
    os << "<circle cx=\"" << tenth(x) << "\" cy=\"" << tenth(y) << "\" r=\"5\" fill=\"#0072b2\"><title>"
       << escapeMarkup(describe(point.plan.layout.plan)) << "</title></circle><text x=\"" << tenth(x) << "\" y=\""
       << tenth(y - 10) << "\" text-anchor=\"middle\">" << duration(point.plan.projection.stepSeconds)
       << "</text><text x=\"" << tenth(x) << "\" y=\"" << height - bottom + 16 << "\" text-anchor=\"middle\">"
       << gib(point.plan.peakBytes()) << "</text>";
  }
  os << "<path d=\"" << line << "\" fill=\"none\" stroke=\"#0072b2\" stroke-opacity=\"0.5\"/>";
  return drawing(height, os.str());
}

class Page {
public:
  explicit Page(const Report &report) : report(report), problem(*report.problem) {}

  std::string write() {
    os << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" << escapeMarkup(report.modelName)
       << " on " << escapeMarkup(problem.cluster.name) << "</title><style>" << kStyle << "</style></head><body>\n";
    writeHead();
    writePlans();
    if (report.best) {
      writeTime();
      writeMemory();
      os << "<h2>A step of one pipeline</h2>\n<div class=\"scroll\">" << drawTimeline(*report.best)
         << "</div><p class=\"note\">Lighter blocks are every second chunk of a rank; below each stage its sends, "
            "receives, and gathers or reductions.</p>\n";
      os << "<h2>Placement</h2>\n<div class=\"scroll\">"
         << cluster::drawPlacement(placementOf(problem, report.best->ranked.layout)) << "</div>\n";
      writeTraffic();
    }
    if (!report.pareto.empty())
      os << "<h2>Memory against speed</h2>\n<p class=\"note\">The fastest layout within less and less memory a rank."
         << "</p>\n"
         << drawPareto(report.pareto);
    if (report.goodput)
      writeGoodput(*report.goodput);
    os << "</body></html>\n";
    return os.str();
  }

private:
  void writeHead() {
    os << "<h1>" << escapeMarkup(report.modelName) << "</h1>\n<p>"
       << counted(static_cast<double>(problem.model.parameters())) << " parameters on "
       << grouped(static_cast<double>(problem.gpus)) << " " << escapeMarkup(problem.cluster.device.name) << " of "
       << escapeMarkup(problem.cluster.name) << "; " << grouped(static_cast<double>(problem.globalBatch))
       << " sequences of " << grouped(static_cast<double>(problem.sequence)) << " tokens a step.</p>\n";
    if (report.best) {
      const Projection &projection = report.best->ranked.projection;
      os << "<p class=\"figures\"><span><b>" << duration(projection.stepSeconds) << "</b>a step</span><span><b>"
         << fixed(100 * projection.mfu(), 1) << " %</b>MFU</span><span><b>"
         << fixed(projection.flopsPerSecondPerGpu(report.count) / 1e12, 0) << "</b>TFLOP/s a GPU</span><span><b>"
         << fixed(projection.tokensPerSecondPerGpu(), 0) << "</b>tokens/s a GPU</span><span><b>"
         << gib(report.best->ranked.peakBytes()) << "</b>on the fullest rank</span></p>\n";
    }
    if (report.solution.infeasible)
      os << "<p class=\"big\">Nothing fits: " << escapeMarkup(report.solution.infeasible->constraint) << ". "
         << escapeMarkup(report.solution.infeasible->change) << "</p>\n";
    if (!report.compileCommand.empty())
      os << "<pre>" << escapeMarkup(report.compileCommand) << "</pre>\n";
    os << "<p class=\"note\">" << plural(report.solution.searched, "layout") << " searched in "
       << duration(report.elapsedSeconds) << ".</p>\n";
  }

  void writePlans() {
    os << "<h2>Plans</h2>\n<div class=\"scroll\"><table><tr><th>#</th>";
    for (const auto &[name, value] : optionsOf(Layout()))
      os << "<th>" << name << "</th>";
    os << "<th>step</th><th>MFU %</th><th>tokens/s</th><th>bubble</th><th>peak</th></tr>\n";
    size_t number = 0;
    for (const RankedPlan &plan : report.solution.plans) {
      os << "<tr"
         << (!plan.fits    ? " class=\"over\""
             : number == 0 ? " class=\"best\""
                           : "")
         << "><td>" << ++number << "</td>";
      for (const auto &[name, value] : optionsOf(plan.layout))
        os << "<td>" << escapeMarkup(value) << "</td>";
      os << "<td>" << duration(plan.projection.stepSeconds) << "</td><td>" << fixed(100 * plan.projection.mfu(), 1)
         << "</td><td>" << fixed(plan.projection.tokensPerSecondPerGpu(), 0) << "</td><td>"
         << fixed(plan.projection.bubbleRatio, 3) << "</td><td>" << gib(plan.peakBytes()) << "</td></tr>\n";
    }
    os << "</table></div>\n";
  }

  void writeTime() {
    BarChart chart;
    auto addBar = [&](const std::string &label, const RankedPlan &plan) {
      chart.add(label, partsOf(plan.projection.breakdown), duration(plan.projection.stepSeconds));
    };
    size_t number = 0;
    for (const RankedPlan &plan : report.solution.plans)
      addBar("plan " + std::to_string(++number), plan);
    if (report.comparison)
      addBar("compared with", report.comparison->other);
    os << "<h2>Where the time goes</h2>\n" << chart.draw(duration);
  }

  void writeMemory() {
    BarChart chart;
    const cluster::Device &device = problem.cluster.device;
    const std::vector<StageMemory> &memory = report.best->ranked.memory;
    for (size_t stage = 0; stage < std::min(memory.size(), kMostBars); ++stage)
      chart.add("stage " + std::to_string(stage), partsOf(memory[stage]), gib(memory[stage].total()));
    chart.setLimit(device.usableBytes - device.contextBytes,
                   gib(device.usableBytes - device.contextBytes) + " beside the context");
    os << "<h2>Memory of a rank by pipeline stage</h2>\n" << chart.draw(gib);
  }

  void writeTraffic() {
    os << "<table><tr><th>axis</th><th>groups</th><th>members</th><th>sent by a rank, a step</th><th>shows</th></tr>\n";
    for (const AxisTraffic &axis : trafficOf(problem, *report.best))
      os << "<tr><td>" << axis.placement.axes.str() << "</td><td>" << axis.placement.groups << "</td><td>"
         << axis.placement.members << "</td><td>" << gib(axis.sentBytes) << "</td><td>" << duration(axis.exposedSeconds)
         << "</td></tr>\n";
    os << "</table>\n";
  }

  void writeGoodput(const Goodput &goodput) {
    BarChart chart;
    for (const Checkpointing &mode : goodput.modes)
      chart.add(nameOf(mode.mode),
                {{"effective", mode.effective},
                 {"paused for checkpoints", mode.paused},
                 {"work done twice", mode.repeated},
                 {"restarting", mode.restarting},
                 {"planned", mode.planned}},
                fixed(100 * mode.effective, 2) + " %");
    const Checkpointing &best = goodput.getBest();
    os << "<h2>Training time that failures leave</h2>\n<p>An unexpected failure every "
       << fixed(goodput.hoursBetweenFailures, 1) << " h; best " << nameOf(best.mode) << " checkpoints every "
       << best.bestSteps << " steps (" << duration(best.bestSeconds) << ").";
    if (goodput.days > 0)
      os << " The token budget takes " << fixed(goodput.days, 1) << " days and " << grouped(goodput.gpuHours)
         << " GPU hours.";
    os << "</p>\n" << chart.draw([](double part) { return fixed(100 * part, 2) + " %"; });
    BarChart causes;
    for (const CauseCount &cause : goodput.causes)
      causes.add(cause.name.substr(0, 24),
                 {{"unexpected, a day", cause.planned ? 0 : cause.perDay},
                  {"planned, a day", cause.planned ? cause.perDay : 0}},
                 fixed(cause.perDay, 2));
    os << "<p class=\"note\">Interruptions a day by cause</p>\n"
       << causes.draw([](double value) { return fixed(value, 2); });
  }

  const Report &report;
  const Problem &problem;
  std::ostringstream os;
};
} // namespace

std::string planner::reportHtml(const Report &report) { return Page(report).write(); }
