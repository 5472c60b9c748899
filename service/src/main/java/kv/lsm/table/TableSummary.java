package kv.lsm.table;

/// What a finished table holds.
///
/// @param bytes size of the file
/// @param entries keys, tombstones included
/// @param smallest first key
/// @param largest last key
public record TableSummary(long bytes, long entries, long tombstones, byte[] smallest, byte[] largest) {}
