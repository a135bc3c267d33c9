/**
 * Limits of the protocol (docs/protocol.md "Limits"): the largest of each thing. Lengths are in bytes of
 * UTF-8, sizes of records and batches are metered.
 */

export const MIB = 1_048_576

/** The largest sequence number and timestamp, 2^53 - 1: JavaScript numbers are exact up to it. */
export const INTEGER_MAX = Number.MAX_SAFE_INTEGER

// Names and texts
export const BASIN_NAME_BYTES_MAX = 48
/** The shortest name that `POST /basins` and the metrics paths accept. `PUT` and local calls accept 1. */
export const BASIN_NAME_BYTES_MIN_ON_POST = 8
export const STREAM_NAME_BYTES_MAX = 512
export const ACCESS_TOKEN_ID_BYTES_MAX = 96
export const REQUEST_TOKEN_BYTES_MAX = 36
export const FENCING_TOKEN_BYTES_MAX = 36
export const PRODUCER_ID_BYTES_MAX = 256
export const STREAM_SEQ_BYTES_MAX = 256
export const METADATA_ENTRIES_MAX = 16
/** All names and values of the metadata of a stream. */
export const METADATA_BYTES_MAX = 2048

// Appends
export const RECORD_METERED_BYTES_MAX = MIB
export const BATCH_RECORDS_MAX = 1000
export const BATCH_METERED_BYTES_MAX = MIB
/**
 * The largest protobuf encoding of a batch: with its positions and the tail it still fits a session frame of
 * 2,097,151 bytes (docs/protocol.md "Frames"). Only records with very many tiny headers come near it.
 */
export const BATCH_ENCODED_BYTES_MAX = 2 * MIB - 128
/**
 * The most records of an append that exceeds the limits of a batch: those of the Durable Streams protocol do,
 * as one message of it may be several records. It is stored as several blocks.
 */
export const LARGE_APPEND_RECORDS_MAX = 16_000
/** The size of such an append: a body of 16 MiB, and the overhead of its records. */
export const LARGE_APPEND_BYTES_MAX = 17 * MIB
export const PRODUCERS_MAX = 1_000

// Reads and lists
export const READ_RECORDS_MAX = 1000
export const READ_METERED_BYTES_MAX = MIB
/** The longest wait of a read of one batch, in milliseconds. */
export const UNARY_WAIT_MS_MAX = 60_000
/** The longest wait and the latest time on the wire, in seconds: an unsigned 32-bit number. */
export const SECONDS_MAX = 0xff_ff_ff_ff
export const LIST_LIMIT_MAX = 1000
/** The longest range of a metrics query, in seconds: 30 days. */
export const METRICS_RANGE_SECONDS_MAX = 2_592_000
