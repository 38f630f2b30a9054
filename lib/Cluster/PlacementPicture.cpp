//===- PlacementPicture.cpp - a placement as an SVG picture ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/PlacementPicture.h"
#include "drover/Cluster/Markup.h"
#include "drover/Cluster/PlacementReport.h"
#include "drover/Cluster/Quantity.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::cluster;

namespace {
// Pixels.
constexpr double kWidth = 760, kMargin = 16, kGap = 3, kTitleHeight = 22, kPanelGap = 22, kLegendLine = 20;
constexpr double kLeastCell = 22, kMostCell = 96, kMark = 2.8;
/// Units drawn of one unit of a level; a line says how many more there are.
constexpr int64_t kMostCells = 256;

/// By Axis: readable on white and told apart by readers who do not see red against green (Okabe and Ito, 2008).
constexpr const char *kColors[kNumAxes] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7"};
constexpr const char *kUsed = "#eef2f6", *kFree = "#ffffff", *kLine = "#b8c0c8", *kText = "#24292f",
                     *kBlock = "#24292f";

std::string number(double value) { return printQuantity(std::round(value * 10) / 10, Quantity::Number); }

/// Elements in the order of drawing, and how far down they reach.
class Canvas {
public:
  void rectangle(double x, double y, double width, double height, const std::string &fill, const std::string &stroke,
                 double strokeWidth, const std::string &tooltip = "") {
    elements += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" +
                number(height) + "\" rx=\"2\" fill=\"" + fill + "\" stroke=\"" + stroke + "\" stroke-width=\"" +
                number(strokeWidth) + "\"" +
                (tooltip.empty() ? "/>\n" : "><title>" + escapeMarkup(tooltip) + "</title></rect>\n");
    bottom = std::max(bottom, y + height);
  }
  void circle(double x, double y, double radius, const std::string &fill) {
    elements += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" fill=\"" +
                fill + "\"/>\n";
  }
  void text(double x, double y, const std::string &text, bool bold = false) {
    elements += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" fill=\"" + std::string(kText) + "\"" +
                (bold ? " font-weight=\"bold\"" : "") + ">" + escapeMarkup(text) + "</text>\n";
    bottom = std::max(bottom, y);
  }
  /// From the drawn unit of one panel to the panel that shows its inside.
  void wedge(double left, double right, double top, double panelLeft, double panelRight, double panelTop) {
    elements += "<path d=\"M" + number(left) + " " + number(top) + " L" + number(panelLeft) + " " + number(panelTop) +
                " L" + number(panelRight) + " " + number(panelTop) + " L" + number(right) + " " + number(top) +
                " Z\" fill=\"" + kUsed + "\" fill-opacity=\"0.6\"/>\n";
  }
  std::string finish(const std::string &title) const {
    std::string height = number(bottom + kMargin);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " + height + "\" width=\"" +
           number(kWidth) + "\" height=\"" + height + "\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n" +
           "<title>" + escapeMarkup(title) + "</title>\n" + elements + "</svg>\n";
  }
  double getBottom() const { return bottom; }

private:
  std::string elements;
  double bottom = 0;
};

class Picture {
public:
  Picture(const Placement &placement, int64_t rank)
      : placement(placement), cluster(placement.getCluster()), grid(placement.getGrid()), rank(rank),
        block(blockOf(placement)) {
    for (size_t i = 0; i < kNumAxes; ++i)
      if (grid.sizes[i] > 1)
        groups[i] = placement.groupOf(static_cast<Axis>(i), rank);
  }

  std::string draw() {
    std::vector<std::string> lines = printPlacement(placement);
    canvas.text(kMargin, kMargin + 12, lines.front() + "; the groups of rank " + std::to_string(rank), true);
    drawLegend(lines);
    double top = canvas.getBottom() + kPanelGap;
    for (size_t level = cluster.levels.size(); level-- > 0;)
      top = drawPanel(level, top);
    return canvas.finish("placement of " + std::to_string(grid.ranks()) + " ranks on " + cluster.name);
  }

private:
  /// A line of the report each, with the color of its axis.
  void drawLegend(const std::vector<std::string> &lines) {
    double y = kMargin + 12 + kLegendLine;
    for (size_t i = 1; i < lines.size(); ++i, y += kLegendLine) {
      std::string name = lines[i].substr(0, lines[i].find(':'));
      if (std::optional<Axis> axis = parseAxis(name))
        canvas.circle(kMargin + 5, y - 4, 5, kColors[static_cast<size_t>(*axis)]);
      else if (block && lines[i].rfind("block ", 0) == 0)
        canvas.rectangle(kMargin, y - 9, 10, 10, kUsed, kBlock, 1.5);
      canvas.text(kMargin + 18, y, lines[i]);
    }
  }

  std::string titleOf(size_t level) const {
    const Level &drawn = cluster.levels[level];
    std::string below = level ? cluster.levels[level - 1].name : "GPU";
    bool several = cluster.gpusIn(level) < cluster.gpus();
    std::string title = drawn.name + (several ? " " + std::to_string(rank / cluster.gpusIn(level)) : "") + ": " +
                        std::to_string(drawn.members) + " " + below + (drawn.members == 1 ? "" : "s") + ", " +
                        printQuantity(drawn.bandwidth, Quantity::BytesPerSecond) + " a GPU";
    if (drawn.oversubscription > 1)
      title += ", 1:" + printQuantity(drawn.oversubscription, Quantity::Number);
    return title + ", " + printQuantity(drawn.latency, Quantity::Seconds) + " a hop";
  }

  /// Ranks of a group of `rank` in the GPUs [begin, begin + count).
  int64_t membersIn(size_t axis, int64_t begin, int64_t count) const {
    auto first = std::lower_bound(groups[axis].begin(), groups[axis].end(), begin);
    return std::lower_bound(first, groups[axis].end(), begin + count) - first;
  }

  std::string tooltipOf(const std::string &unitName, int64_t unit, int64_t begin, int64_t size) const {
    int64_t used = std::clamp<int64_t>(grid.ranks() - begin, 0, size);
    std::string text = unitName + " " + std::to_string(unit) + ": " + std::to_string(used) + " of " +
                       std::to_string(size) + (size == 1 ? " GPU used" : " GPUs used");
    for (Axis axis : grid.order)
      if (int64_t members = membersIn(static_cast<size_t>(axis), begin, size))
        text += ", " + std::to_string(members) + " of the " + nameOf(axis) + " group";
    return text;
  }

  /// Cells a row: whole blocks where they fit, else what makes cells neither thin nor wide.
  int64_t columnsOf(size_t level, int64_t cells) const {
    int64_t most = static_cast<int64_t>((kWidth - 2 * kMargin) / (kLeastCell + kGap));
    int64_t columns = std::min(cells, most);
    int64_t blockCells = level && block ? block->unitsOfBlock[level - 1] : 0;
    if (cells > most && blockCells > 1 && blockCells <= most)
      columns = most / blockCells * blockCells;
    return columns;
  }

  void drawCell(double x, double y, double width, double height, const std::string &unitName, int64_t unit,
                int64_t size) {
    int64_t begin = unit * size;
    double used = std::clamp(static_cast<double>(grid.ranks() - begin) / static_cast<double>(size), 0., 1.);
    canvas.rectangle(x, y, width, height, kFree, kLine, 1, tooltipOf(unitName, unit, begin, size));
    if (used > 0)
      canvas.rectangle(x, y, width * used, height, kUsed, kLine, 1, tooltipOf(unitName, unit, begin, size));
    double place = x + kMark + 2;
    for (Axis axis : grid.order)
      if (membersIn(static_cast<size_t>(axis), begin, size) > 0) {
        canvas.circle(place, y + height / 2, kMark, kColors[static_cast<size_t>(axis)]);
        place += std::min(2 * kMark + 1, (width - 2 * kMark - 4) / (kNumAxes - 1));
      }
  }

  /// The unit of `level` that holds the rank. Returns where the next panel begins.
  double drawPanel(size_t level, double top) {
    int64_t members = cluster.levels[level].members, size = level ? cluster.gpusIn(level - 1) : 1;
    // Of many units a page: the one that the rank is on.
    int64_t skipped = rank / size % members / kMostCells * kMostCells;
    int64_t cells = std::min(members - skipped, kMostCells);
    int64_t first = rank / cluster.gpusIn(level) * members + skipped;
    int64_t columns = columnsOf(level, cells), rows = (cells + columns - 1) / columns;
    double pitch = std::min((kWidth - 2 * kMargin - kGap) / static_cast<double>(columns), kMostCell + kGap);
    double cell = pitch - kGap, height = rows > 1 ? kLeastCell : kLeastCell + 6;
    double boxWidth = pitch * static_cast<double>(columns) + kGap;
    double boxHeight = (height + kGap) * static_cast<double>(rows) + kGap;
    double boxTop = top + kTitleHeight;
    if (outerCellRight > outerCellLeft)
      canvas.wedge(outerCellLeft, outerCellRight, outerBottom, kMargin, kMargin + boxWidth, boxTop);
    canvas.text(kMargin, top + 14, titleOf(level), true);
    canvas.rectangle(kMargin, boxTop, boxWidth, boxHeight, kFree, kLine, 1.5);
    std::string unitName = level ? cluster.levels[level - 1].name : "GPU";
    for (int64_t i = 0; i < cells; ++i) {
      double x = kMargin + kGap + pitch * static_cast<double>(i % columns);
      double y = boxTop + kGap + (height + kGap) * static_cast<double>(i / columns);
      drawCell(x, y, cell, height, unitName, first + i, size);
      if (rank / size == first + i) {
        outerCellLeft = x;
        outerCellRight = x + cell;
      }
    }
    outlineBlock(level, first, cells, columns, pitch, height, boxTop);
    if (cells < members)
      canvas.text(kMargin, canvas.getBottom() + 16,
                  "and " + std::to_string(members - cells) + " " + unitName + "s more");
    outerBottom = canvas.getBottom() + (cells < members ? 4 : 0);
    return canvas.getBottom() + kPanelGap;
  }

  /// Around the cells of the block that holds the rank, where it is whole cells of one row.
  void outlineBlock(size_t level, int64_t first, int64_t cells, int64_t columns, double pitch, double height,
                    double boxTop) {
    int64_t wide = !block ? 0 : level ? block->unitsOfBlock[level - 1] : block->ranks;
    if (wide < 2 || wide >= cells || columns % wide)
      return;
    int64_t size = level ? cluster.gpusIn(level - 1) : 1;
    int64_t at = rank / block->ranks * block->ranks / size - first;
    if (at < 0 || at + wide > cells || at % columns + wide > columns)
      return;
    canvas.rectangle(kMargin + kGap + pitch * static_cast<double>(at % columns) - 1.5,
                     boxTop + kGap + (height + kGap) * static_cast<double>(at / columns) - 1.5,
                     pitch * static_cast<double>(wide) - kGap + 3, height + 3, "none", kBlock, 1.5);
  }

  const Placement &placement;
  const Cluster &cluster;
  const Grid &grid;
  int64_t rank;
  std::optional<Block> block;
  std::array<std::vector<int64_t>, kNumAxes> groups; // by Axis; empty for axes of size one
  Canvas canvas;
  double outerCellLeft = 0, outerCellRight = 0, outerBottom = 0; // of the cell that the next panel shows
};
} // namespace

std::string cluster::drawPlacement(const Placement &placement, int64_t rank) {
  assert(rank >= 0 && rank < placement.getGrid().ranks() && "no such rank");
  return Picture(placement, rank).draw();
}
