// A comparison as people and programs read it.
#ifndef LENGTHWISE_CLIENT_COMPARISON_COMPARISON_DISPLAY_H_
#define LENGTHWISE_CLIENT_COMPARISON_COMPARISON_DISPLAY_H_

#include <ostream>
#include <string>
#include <vector>

#include "client/comparison/comparison.h"
#include "client/comparison/protocol_difference.h"
#include "client/rendering/records.h"
#include "client/rendering/text.h"

namespace lengthwise::client {

struct ComparisonDocument {
  std::string experiment;  // its short name
  Comparison comparison;
  std::vector<ProtocolDifference> differences;
  // Also the rows and columns of which no cell was run.
  bool whole_table = false;
};

// For a terminal: as many tables below each other as `width` asks for, the best of a row with a
// star, then what was not run and how the protocol differs.
void WriteTerminal(const ComparisonDocument& document, int width, const Palette& palette,
                   std::ostream& out);

// One cell an encoding, "measured / published / difference".
void WriteMarkdown(const ComparisonDocument& document, std::ostream& out);

// A heading, one table with columns for measured, published and difference, and the remarks.
void WriteHtml(const ComparisonDocument& document, std::ostream& out);

// A table environment for booktabs, the remarks in its caption.
void WriteLatex(const ComparisonDocument& document, std::ostream& out);

// One row a cell of the whole table; values of cells that were not run are absent.
Records ComparisonRecords(const Comparison& comparison);

// {"experiment", "table", "cells": [the records], "differences": [...], ...}.
void WriteComparisonJson(const ComparisonDocument& document, std::ostream& out);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_COMPARISON_DISPLAY_H_
