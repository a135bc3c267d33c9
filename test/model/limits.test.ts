import { expect, it } from 'vitest'
import * as limits from '../../src/model/limits.ts'
import { STREAM_START } from '../../src/model/position.ts'

it('has the limits of docs/protocol.md', () => {
  expect({ ...limits }).toEqual({
    MIB: 1024 * 1024,
    BASIN_NAME_BYTES_MAX: 48,
    BASIN_NAME_BYTES_MIN_ON_POST: 8,
    STREAM_NAME_BYTES_MAX: 512,
    REQUEST_TOKEN_BYTES_MAX: 36,
    FENCING_TOKEN_BYTES_MAX: 36,
    ACCESS_TOKEN_ID_BYTES_MAX: 96,
    PRODUCER_ID_BYTES_MAX: 256,
    PRODUCERS_MAX: 1000,
    STREAM_SEQ_BYTES_MAX: 256,
    METADATA_ENTRIES_MAX: 16,
    METADATA_BYTES_MAX: 2048,
    METRICS_RANGE_SECONDS_MAX: 30 * 24 * 3600,
    BATCH_RECORDS_MAX: 1000,
    LARGE_APPEND_RECORDS_MAX: 16_000,
    LARGE_APPEND_BYTES_MAX: 17 * 1024 * 1024,
    BATCH_ENCODED_BYTES_MAX: 2 * 1024 * 1024 - 128,
    BATCH_METERED_BYTES_MAX: 1_048_576,
    RECORD_METERED_BYTES_MAX: 1_048_576,
    READ_RECORDS_MAX: 1000,
    READ_METERED_BYTES_MAX: 1_048_576,
    UNARY_WAIT_MS_MAX: 60_000,
    SECONDS_MAX: 2 ** 32 - 1,
    LIST_LIMIT_MAX: 1000,
    INTEGER_MAX: 2 ** 53 - 1,
  })
})

it('starts every stream at an immutable position of 0, 0', () => {
  expect(STREAM_START).toEqual({ seqNum: 0, timestamp: 0 })
  expect(Object.isFrozen(STREAM_START)).toBe(true)
})
