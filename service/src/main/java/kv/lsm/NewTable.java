package kv.lsm;

import kv.lsm.table.SSTable;

/// A table that was just written and opened; its maker releases it when a view has it or it is given up.
record NewTable(TableMetadata metadata, SSTable table) {}
