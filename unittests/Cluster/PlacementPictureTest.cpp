//===- PlacementPictureTest.cpp - a placement as an SVG picture -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/PlacementPicture.h"
#include "TestClusters.h"
#include "gtest/gtest.h"
#include <cctype>

using namespace drover;
using namespace drover::cluster;

namespace {

/// Why a text is not well-formed XML of the kind that a picture is: nested elements, quoted attributes, escaped text.
/// Empty when it is.
std::string faultOf(const std::string &xml) {
  std::vector<std::string> open;
  bool seen = false;
  for (size_t at = 0; at < xml.size();) {
    if (xml[at] == '>')
      return "a bare '>' at " + std::to_string(at);
    if (xml[at] == '&') {
      size_t end = xml.find(';', at);
      std::string name = xml.substr(at + 1, end - at - 1);
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot")
        return "entity " + name;
      at = end + 1;
      continue;
    }
    if (xml[at] != '<') {
      if (open.empty() && !std::isspace(static_cast<unsigned char>(xml[at])))
        return "text outside of the element";
      ++at;
      continue;
    }
    size_t end = xml.find('>', at);
    if (end == std::string::npos)
      return "an open tag";
    std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2)
      return "tag " + tag;
    std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag)
        return "end of " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      if (open.empty() && seen)
        return "a second element";
      open.push_back(name);
      seen = true;
    }
  }
  return open.empty() && seen ? "" : "an element is not closed";
}

int64_t count(const std::string &text, const std::string &part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(PlacementPicture, theCheckerFindsWhatIsNotWellFormed) {
  for (const char *text : {"", "<a>", "<a></b>", "<a/>x", "<a>&b;</a>", "<a b=\"></a>", "<a/><b/></b>", "<a>></a>"})
    EXPECT_NE(faultOf(text), "") << text;
  EXPECT_EQ(faultOf("<a b=\"c\"><d/>x &lt; y</a>\n"), "");
}

TEST(PlacementPicture, everyPlacementIsWellFormed) {
  for (const Cluster &cluster : {makeLlama3(), makeDgxH100(2048), makeDgxH100(1)})
    for (Grid grid : {Grid{{1, 1, 1, 1}, {}}, Grid{{8, 1, 1, 1}, {}}, Grid{{2, 2, 1, 1}, {}}, Grid{{8, 1, 16, 128}, {}},
                      Grid{{3, 2, 5, 7}, {}}})
      for (AxisOrder order : {kDefaultOrder, AxisOrder{Axis::DP, Axis::PP, Axis::CP, Axis::TP}}) {
        grid.order = order;
        if (checkGrid(cluster, grid))
          continue;
        Placement placement(cluster, grid);
        for (int64_t rank : {int64_t{0}, grid.ranks() / 2, grid.ranks() - 1}) {
          std::string picture = drawPlacement(placement, rank);
          EXPECT_EQ(faultOf(picture), "") << cluster.name;
          EXPECT_LT(picture.size(), 300000u);
        }
      }
}

TEST(PlacementPicture, llama3ShowsPodsBlocksAndGroups) {
  Cluster cluster = makeLlama3();
  std::string picture = drawPlacement({cluster, {{8, 1, 16, 128}, kDefaultOrder}});
  EXPECT_NE(picture.find("<title>pod 5: 1024 of 3072 GPUs used, 8 of the DP group</title>"), std::string::npos)
      << "the sixth pod is a third full";
  EXPECT_NE(picture.find("<title>pod 6: 0 of 3072 GPUs used</title>"), std::string::npos);
  EXPECT_NE(picture.find("<title>rack 8: 16 of 16 GPUs used, 1 of the DP group</title>"), std::string::npos);
  EXPECT_NE(picture.find("<title>server 1: 8 of 8 GPUs used, 1 of the PP group</title>"), std::string::npos);
  EXPECT_NE(picture.find("<title>GPU 7: 1 of 1 GPU used, 1 of the TP group</title>"), std::string::npos);
  EXPECT_NE(picture.find("only DP crosses the 1:7 links of the cluster"), std::string::npos);
  // Marks: one in the legend; TP in 1 pod, 1 rack, 1 server, 8 GPUs; DP in 6 pods, 24 racks, 1 server, 1 GPU.
  EXPECT_EQ(count(picture, "fill=\"#0072b2\""), 1 + 1 + 1 + 1 + 8);
  EXPECT_EQ(count(picture, "fill=\"#cc79a7\""), 1 + 6 + 24 + 1 + 1);
  EXPECT_EQ(count(picture, "fill=\"#e69f00\""), 0) << "CP has one rank";
}

TEST(PlacementPicture, namesAreEscapedAndLongListsCut) {
  Cluster cluster = makeDgxH100(2048);
  cluster.name = "a<b>&\"c\"\n";
  std::string picture = drawPlacement({cluster, {{8, 1, 1, 512}, kDefaultOrder}});
  EXPECT_EQ(faultOf(picture), "");
  EXPECT_NE(picture.find("a&lt;b&gt;&amp;&quot;c&quot; "), std::string::npos);
  EXPECT_NE(picture.find("and 1792 servers more"), std::string::npos);
  picture = drawPlacement({cluster, {{8, 1, 1, 512}, kDefaultOrder}}, 8 * 500);
  EXPECT_NE(picture.find("<title>server 500: 8 of 8 GPUs used, 8 of the TP group, 1 of the DP group</title>"),
            std::string::npos)
      << "the units around the rank are drawn";
}

} // namespace
