/** Limits of the service (service-interface.md "Limits", wire-behaviour.md 3.3 and 8.1). Lengths are bytes of UTF-8. */
export const MIB = 1_048_576

export const BASIN_NAME_BYTES_MAX = 48
/** Shortest name that `POST /basins` and the metrics paths accept; `PUT` and in-process calls accept 1. */
export const BASIN_NAME_BYTES_MIN_ON_POST = 8
export const STREAM_NAME_BYTES_MAX = 512
export const REQUEST_TOKEN_BYTES_MAX = 36
export const FENCING_TOKEN_BYTES_MAX = 36
export const ACCESS_TOKEN_ID_BYTES_MAX = 96

export const BATCH_RECORDS_MAX = 1000
export const BATCH_METERED_BYTES_MAX = MIB
export const RECORD_METERED_BYTES_MAX = MIB
/**
 * Largest protobuf encoding of a batch: with its positions and the tail it still fits a frame of the session protocol, 2,097,151 bytes
 * (wire-behaviour.md 6.1). Only records of very many tiny headers come near.
 */
export const BATCH_ENCODED_BYTES_MAX = 2 * MIB - 128

export const RECORD_HEADERS_MAX = 0xff_ff_ff

export const READ_RECORDS_MAX = 1000
export const READ_METERED_BYTES_MAX = MIB
/** Longest long poll of a unary read, in seconds. */
export const UNARY_WAIT_SECONDS_MAX = 60
/** Largest `wait` of any read, in seconds: an unsigned 32-bit number. */
export const WAIT_SECONDS_MAX = 0xff_ff_ff_ff

export const LIST_LIMIT_MAX = 1000

/** Longest range of a metrics query, in seconds: 30 days. */
export const METRICS_RANGE_SECONDS_MAX = 2_592_000

/** Sequence numbers and timestamps are JavaScript numbers, exact up to here (2^53 - 1). */
export const INTEGER_MAX = Number.MAX_SAFE_INTEGER
